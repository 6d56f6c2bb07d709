import { describe, expect, test } from "vitest";
import type { Performed } from "../core/call.js";
import { encodeError, encodeResult, RESULT_TOMBSTONE } from "../core/codec.js";
import { CODES, type ErrorCode, OncekeyError } from "../core/errors.js";
import type { Settled } from "../core/function-results.js";
import type { StoredOutcome } from "../core/record.js";
import { type Circumstances, ranTooLong, type Verdict, verdictOn, verdictOnError } from "./verdict.js";

type Ending = Extract<Performed<unknown>, { readonly kind: "executed" }>["ending"];

const usual: Circumstances<unknown> = {
  policy: { maxAttempts: undefined, reconcile: undefined },
  backoff: { firstMs: 1_000, mostMs: 30_000 },
  result: undefined,
  deliveries: 1,
};
const declined = new Error("declined");

function stored(value: unknown): StoredOutcome {
  const encoded = encodeResult(value, 1_000);
  if (encoded.kind !== "encoded") throw new Error("the value cannot be stored");
  return encoded.outcome;
}

function onCode(code: ErrorCode, circumstances = usual): string {
  const verdict = verdictOnError(circumstances, new OncekeyError(code, ""));
  return verdict.kind === "done" ? verdict.kind : `${verdict.kind}: ${verdict.reason}`;
}

describe("a call that was refused", () => {
  const acknowledged: ErrorCode[] = ["ALREADY_COMPLETED", "RESULT_NOT_RETAINED"];
  const putBack: ErrorCode[] = [
    "IN_FLIGHT",
    "STORE_UNAVAILABLE",
    "CAPACITY_EXCEEDED",
    "NOT_COMMITTED",
    "COMMIT_UNDECIDED",
    "RECORD_UNREADABLE",
    "CONFIGURATION_INVALID",
    "GUARANTEE_UNSUPPORTED",
    "CLOSING",
  ];
  const dead: ErrorCode[] = [
    "KEY_MISSING",
    "KEY_INVALID",
    "SCOPE_MISSING",
    "KEY_REUSED",
    "OUTCOME_UNKNOWN",
    "ATTEMPTS_EXHAUSTED",
  ];

  test.each(acknowledged)("%s: done before, acknowledged", (code) => expect(onCode(code)).toBe("done"));
  test.each(putBack)("%s: put back, since it may go better later", (code) =>
    expect(onCode(code)).toMatch(/^put-back/),
  );
  test.each(dead)("%s: a dead letter, since it would go round for ever", (code) =>
    expect(onCode(code)).toMatch(/^dead-letter/),
  );

  test("every code that says that trying again can help comes again, and no other but those that need an operator", () => {
    const mended: readonly string[] = ["RECORD_UNREADABLE", "CONFIGURATION_INVALID", "GUARANTEE_UNSUPPORTED"];
    for (const [code, { retryable }] of Object.entries(CODES)) {
      const comesAgain = onCode(code as ErrorCode).startsWith("put-back");
      expect([code, comesAgain]).toEqual([code, retryable || mended.includes(code)]);
    }
  });

  test("a code of a later version goes by whether trying again can help", () => {
    const later = (retryable: boolean) =>
      Object.assign(new OncekeyError("IN_FLIGHT", ""), { code: "LATER", retryable });
    expect(verdictOnError(usual, later(true))).toMatchObject({ kind: "put-back" });
    expect(verdictOnError(usual, later(false))).toMatchObject({ kind: "dead-letter", reason: "refused" });
  });

  test("what is none of our errors loses no message", () => {
    expect(verdictOnError(usual, declined)).toMatchObject({ kind: "put-back", error: declined });
  });
});

describe("a call that was answered", () => {
  const executed = (ending: Ending, threw = true, attempt = 1): Performed<Settled<unknown>> => ({
    kind: "executed",
    ending,
    attempt,
    value: threw ? { kind: "threw", error: declined } : { kind: "returned", value: 7 },
  });

  test.each(["kept", "pending"] as const)("its work returned, and that is %s: acknowledged", (ending) => {
    expect(verdictOn(usual, executed(ending, false))).toEqual({ kind: "done", how: "executed", result: 7 });
  });

  test("its work threw: put back, with the error", () => {
    const verdict = verdictOn(usual, executed("released"));
    expect(verdict).toEqual({ kind: "put-back", reason: "failed", delayMs: 1_000, error: declined });
  });

  test("its work threw for the last time: a dead letter at once, with the error", () => {
    const policy = { maxAttempts: 3, reconcile: undefined };
    const verdicts = [2, 3].map((attempt) =>
      verdictOn({ ...usual, policy }, executed("released", true, attempt)),
    );
    expect(verdicts).toMatchObject([
      { kind: "put-back" },
      { kind: "dead-letter", reason: "attempts-exhausted", error: declined },
    ]);
  });

  test("its work threw what is kept: a dead letter, the first time and from the record", () => {
    expect(verdictOn(usual, executed("kept"))).toMatchObject({
      kind: "dead-letter",
      reason: "failed-for-good",
    });
    const encoded = encodeError(declined, 1_000);
    if (encoded.kind !== "encoded") throw new Error("unexpected");
    const repeat = verdictOn(usual, { kind: "replayed", outcome: encoded.outcome, waitedMs: 0 });
    expect(repeat).toMatchObject({
      kind: "dead-letter",
      reason: "failed-for-good",
      error: { message: "declined" },
    });
  });

  test("nobody knows how its work ended: a dead letter, or the next delivery asks", () => {
    expect(verdictOn(usual, executed("unknown"))).toMatchObject({
      kind: "dead-letter",
      reason: "outcome-unknown",
    });
    const policy = { maxAttempts: undefined, reconcile: () => ({ kind: "unknown" as const }) };
    const asking = verdictOn({ ...usual, policy }, executed("unknown"));
    expect(asking).toMatchObject({ kind: "put-back", reason: "outcome-unknown", error: declined });
  });

  test("done before: acknowledged with the first result, nothing included", () => {
    const repeat = (outcome: StoredOutcome) => verdictOn(usual, { kind: "replayed", outcome, waitedMs: 0 });
    expect(repeat(stored({ a: 1 }))).toEqual({ kind: "done", how: "repeat", result: { a: 1 } });
    expect(repeat(stored(undefined))).toEqual({ kind: "done", how: "repeat", result: undefined });
    expect(repeat(RESULT_TOMBSTONE)).toEqual({ kind: "done", how: "repeat", result: undefined });
  });

  test("two runs finished: the record's result counts", () => {
    const both = {
      kind: "superseded",
      value: { kind: "returned", value: 7 },
      attempt: 1,
      outcome: stored(8),
    } as const;
    expect(verdictOn(usual, both)).toEqual({ kind: "done", how: "repeat", result: 8 });
  });

  test("a codec that cannot read what an older version wrote brings no message back", () => {
    const result = {
      encode: (value: unknown) => value,
      decode() {
        throw new Error("unknown version");
      },
    };
    const repeat = verdictOn({ ...usual, result }, { kind: "replayed", outcome: stored(7), waitedMs: 0 });
    expect(repeat).toEqual({ kind: "done", how: "repeat", result: undefined });
  });

  test("without a claim: what it returned counts, what it threw comes again", () => {
    const run = (value: { kind: "returned"; value: number } | { kind: "threw"; error: Error }) =>
      verdictOn(usual, { kind: "unprotected", value });
    expect(run({ kind: "returned", value: 7 })).toEqual({ kind: "done", how: "unprotected", result: 7 });
    expect(run({ kind: "threw", error: declined })).toMatchObject({ kind: "put-back", reason: "failed" });
  });
});

describe("how long it is put back for", () => {
  const delay = (verdict: Verdict) => (verdict.kind === "put-back" ? verdict.delayMs : undefined);
  const failed = (deliveries: number) =>
    delay(verdictOnError({ ...usual, deliveries }, new OncekeyError("STORE_UNAVAILABLE", "")));
  const inFlight = (remainingMs: number | undefined, deliveries: number) =>
    delay(verdictOnError({ ...usual, deliveries }, new OncekeyError("IN_FLIGHT", "", { remainingMs })));

  test("twice as long each time, up to the most, whatever the count", () => {
    expect([1, 2, 3, 6, 5_000].map(failed)).toEqual([1_000, 2_000, 4_000, 30_000, 30_000]);
  });

  test("in flight: never longer than the claim in the way still holds, never at once", () => {
    expect(inFlight(30_000, 1)).toBe(1_000);
    expect(inFlight(700, 6)).toBe(700);
    expect(inFlight(0, 6)).toBe(50);
    expect(inFlight(undefined, 3)).toBe(4_000);
  });

  test("closing: long enough for the channel to be closed meanwhile", () => {
    expect(delay(verdictOnError(usual, new OncekeyError("CLOSING", "")))).toBe(5_000);
  });

  test("a handler that does not end", () => {
    expect(ranTooLong(usual, 930_000)).toMatchObject({ kind: "put-back", reason: "ran-too-long" });
  });
});
