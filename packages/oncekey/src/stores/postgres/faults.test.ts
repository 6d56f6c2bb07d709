import { describe, expect, it } from "vitest";
import { configurationError, OncekeyError } from "../../core/errors.js";
import { batchFaultOf } from "./faults.js";

const told = (code: string) => Object.assign(new Error("refused"), { code, severity: "ERROR" });
const refusal = new OncekeyError("STORE_UNAVAILABLE", "No connection was free.", { retryAfterMs: 1_000 });

describe("an error that ends a batch", () => {
  it.each([
    ["a refusal of the store itself", refusal, "other"],
    ["tables that are not there", configurationError("postgresStore", ["no tables"]), "other"],
    ["a value that fits nowhere", new TypeError("not a text"), "entry"],
    ["data that the server refuses", told("22021"), "entry"],
    ["a deadlock", told("40P01"), "passing"],
    ["a connection that is lost", new Error("Connection terminated unexpectedly"), "passing"],
    ["a right that is missing", told("42501"), "other"],
  ] as const)("%s", (_, error, fault) => {
    expect(batchFaultOf(error)).toBe(fault);
  });
});
