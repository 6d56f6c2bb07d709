import { describe, expect, it } from "vitest";
import { CODES, configurationError, docsOf, isOncekeyError, notPerformed, OncekeyError } from "./errors.js";
import { finishedAs } from "./outcome.js";

describe("a coded error", () => {
  it("is recognised when another copy of the package made it", async () => {
    const path = "./errors.js?copy";
    const copy: typeof import("./errors.js") = await import(/* @vite-ignore */ path);
    expect(copy.OncekeyError).not.toBe(OncekeyError);
    const foreign = new copy.OncekeyError("IN_FLIGHT", "busy");
    expect(foreign instanceof OncekeyError).toBe(false);
    expect([isOncekeyError(foreign), isOncekeyError(foreign, "IN_FLIGHT")]).toEqual([true, true]);
    expect(isOncekeyError(foreign, "CLOSING")).toBe(false);
    expect(copy.isOncekeyError(new OncekeyError("CLOSING", "x"), "CLOSING")).toBe(true);
  });

  it("is not mistaken for others that have a code", () => {
    const others = [
      Object.assign(new Error("x"), { code: "IN_FLIGHT" }),
      { code: "IN_FLIGHT" },
      "x",
      null,
      undefined,
    ];
    for (const other of others) expect(isOncekeyError(other)).toBe(false);
  });

  it("carries what its code says: status, business code, whether trying again helps", () => {
    expect(new OncekeyError("KEY_REUSED", "x")).toMatchObject({
      name: "OncekeyError",
      status: 422,
      businessCode: 42_210,
      retryable: false,
      completed: false,
      problems: [],
    });
    expect(Object.keys(new OncekeyError("KEY_REUSED", "x"))).not.toContain("Symbol(oncekey.error)");
  });

  it("has the statuses and numbers that were promised", () => {
    const promised = {
      KEY_MISSING: [400, 40_010],
      KEY_INVALID: [400, 40_010],
      SCOPE_MISSING: [401, 40_110],
      IN_FLIGHT: [409, 40_911],
      ALREADY_COMPLETED: [409, 40_910],
      OUTCOME_UNKNOWN: [409, 40_912],
      ATTEMPTS_EXHAUSTED: [409, 40_913],
      RESULT_NOT_RETAINED: [409, 40_914],
      CLAIM_LIVE: [409, 40_915],
      REQUEST_TOO_LARGE: [413, 41_310],
      KEY_REUSED: [422, 42_210],
      RESULT_TOO_LARGE: [500, 50_010],
      RECORD_UNREADABLE: [500, 50_011],
      SCOPE_FAILED: [500, 50_012],
      STORE_UNAVAILABLE: [503, 50_310],
      CAPACITY_EXCEEDED: [503, 50_311],
      ATTEMPT_FAILED: [503, 50_312],
      NOT_COMMITTED: [503, 50_313],
      CLOSING: [503, 50_314],
      COMMIT_UNDECIDED: [503, 50_315],
    } as const;
    for (const [code, [status, businessCode]] of Object.entries(promised)) {
      expect(CODES[code as keyof typeof promised]).toMatchObject({ status, businessCode });
    }
    // Missing and malformed are one number; every other code has its own.
    const numbers = Object.values(CODES).map(({ businessCode }) => businessCode);
    expect(new Set(numbers).size).toBe(numbers.length - 1);
  });

  it("has a page", () => {
    expect(docsOf("KEY_REUSED")).toMatch(/\/errors\/key-reused$/);
  });

  it("lists every problem of a configuration", () => {
    const error = configurationError("Policy", ["a is wrong", "b is wrong"]);
    expect(error.message).toBe("Policy is not valid:\n  - a is wrong\n  - b is wrong");
    expect(error.problems).toHaveLength(2);
  });

  it("can say that nothing happened", () => {
    const cause = new Error("network");
    expect(notPerformed("refused", cause)).toMatchObject({
      code: "NOT_PERFORMED",
      message: "refused",
      cause,
    });
    expect("cause" in notPerformed("refused")).toBe(false);
  });
});

describe("the one outcome of a call", () => {
  const outcome = { head: "", body: undefined };
  const executed = (ending: "kept" | "pending" | "released" | "unknown") =>
    finishedAs({ kind: "executed", value: 1, attempt: 1, ending });
  const refused = (error: unknown, waitedMs = 0) => finishedAs({ kind: "refused", error, waitedMs });

  it("names how it ended", () => {
    expect((["kept", "pending", "released", "unknown"] as const).map(executed)).toEqual([
      "executed",
      "executed",
      "released",
      "outcome_unknown",
    ]);
    expect(finishedAs({ kind: "replayed", outcome, waitedMs: 0 })).toBe("replayed");
    expect(finishedAs({ kind: "replayed", outcome, waitedMs: 1 })).toBe("replayed_after_wait");
    expect(finishedAs({ kind: "unprotected", value: 1 })).toBe("store_failure");
    expect(finishedAs({ kind: "superseded", value: 1, attempt: 1, outcome })).toBe("lease_lost");
    expect(refused(new OncekeyError("IN_FLIGHT", ""))).toBe("conflict");
    expect(refused(new OncekeyError("IN_FLIGHT", ""), 5)).toBe("wait_timeout");
    expect(refused(new OncekeyError("KEY_REUSED", ""))).toBe("fingerprint_mismatch");
    expect(refused(new OncekeyError("ALREADY_COMPLETED", ""))).toBe("rejected");
    expect(refused(new Error("client left"))).toBe("rejected");
  });
});
