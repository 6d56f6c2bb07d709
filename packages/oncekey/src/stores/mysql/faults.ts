/**
 * @module
 * What an error means to a batch, and to whoever called the store.
 */
import { isOncekeyError } from "../../core/errors.js";
import type { BatchFault } from "../batches.js";
import { faultOf } from "./driver.js";

/** What an error says of a batch that it ended. */
export function batchFaultOf(error: unknown): BatchFault {
  switch (faultOf(error)) {
    case "held":
    case "lost":
    case "read-only":
      return "passing";
    case "statement":
    case "too-large":
      return "entry";
    case "tables":
    case "too-slow":
      return "other";
    case undefined:
      // A value that does not fit, a result that is too large: found before anything was sent.
      return error instanceof TypeError || isOncekeyError(error, "RESULT_TOO_LARGE") ? "entry" : "other";
  }
}
