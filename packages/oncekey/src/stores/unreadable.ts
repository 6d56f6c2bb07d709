/**
 * @module
 * The status of many keys, of which one may be damaged.
 *
 * Invariant: what cannot be read disturbs nobody else. It looks free, and whoever goes on to claim it is told what it is.
 */
import { isOncekeyError } from "../core/errors.js";
import type { KeyStatus } from "../core/store.js";

/** @param read reads one record and tells its status; may throw `RECORD_UNREADABLE`. */
export function statusOrFree(read: () => KeyStatus): KeyStatus {
  try {
    return read();
  } catch (error) {
    if (!isOncekeyError(error, "RECORD_UNREADABLE")) throw error;
    return { state: "lapsed", holder: undefined };
  }
}
