/**
 * @module
 * Judges the final answer of a handler: kept and replayed, or a failure.
 *
 * Invariant: there is one look, at what was really answered, and it never fails: a rule that throws gives way to the default.
 */
import type { Ended } from "../core/call.js";
import { isOncekeyError, unreachable } from "../core/errors.js";
import type { Internals } from "../core/idempotency.js";
import { keepsStatus, refusedBeforeWork, saidAtOnce } from "../core/policy.js";
import type { StoredOutcome } from "../core/record.js";
import type { CapturedAnswer, HeaderLine } from "./answer.js";
import { keepHeaders } from "./kept-headers.js";
import { commitsStatus, type Route } from "./options.js";
import { encodeSnapshot, tombstoneOf } from "./snapshot.js";

const NOT_KEPT = "is larger than allowed, or was cut off after its client had left";

/** The one look at the final answer, whoever made it. */
export function judge<C>(
  internals: Internals,
  route: Route<C>,
  answer: CapturedAnswer,
  before: readonly HeaderLine[],
): Ended<CapturedAnswer> {
  switch (answer.kind) {
    case "aborted":
      return {
        kind: "failed",
        value: answer,
        code: "ABORTED",
        performed: saysNothingHappened(answer) ? "no" : "maybe",
      };
    case "outgrown":
      return { kind: "failed", value: answer, code: "RESULT_TOO_LARGE", performed: "maybe" };
    case "answered": {
      const { status, headers } = answer;
      if (!isAnswer(status) || !isKept(internals, route, status, headers)) {
        const performed = refusedBeforeWork(status) || saysNothingHappened(answer) ? "no" : "maybe";
        return { kind: "failed", value: answer, code: `HTTP_${status}`, performed };
      }
      const commit = isCommitted(internals, route, status) ? "everything" : "record";
      const notKept = answer.body === undefined ? NOT_KEPT : undefined;
      return { kind: "kept", value: answer, outcome: outcomeOf(answer, before), notKept, commit };
    }
    default:
      return unreachable(answer);
  }
}

/** `Response.error()` has the status 0, and stands for no answer at all. */
function isAnswer(status: number): boolean {
  return status >= 200;
}

/** The handler threw `notPerformed`, whatever answer an error handler made of it. */
function saysNothingHappened({ thrown }: { readonly thrown?: unknown }): boolean {
  return isOncekeyError(thrown, "NOT_PERFORMED");
}

/** A rule that throws must not turn an answer into a fault: then the default rule decides. */
function isKept<C>(
  internals: Internals,
  { policy }: Route<C>,
  status: number,
  headers: readonly HeaderLine[],
): boolean {
  try {
    return saidAtOnce(policy.keep({ kind: "answered", status, headers }));
  } catch {
    internals.emit({ type: "warning", text: "keep threw, or is async; the default rule was used" });
    return keepsStatus(status);
  }
}

/** The effect has happened: a rule that throws must not free its key. */
function isCommitted<C>(internals: Internals, { commitWhen }: Route<C>, status: number): boolean {
  try {
    return saidAtOnce(commitWhen({ status }));
  } catch {
    internals.emit({ type: "warning", text: "commitWhen threw, or is async; the default rule was used" });
    return commitsStatus(status);
  }
}

function outcomeOf(
  answer: Extract<CapturedAnswer, { readonly kind: "answered" }>,
  before: readonly HeaderLine[],
): StoredOutcome {
  const { status, body } = answer;
  const snapshot = { status, headers: keepHeaders(before, answer.headers), body };
  try {
    return encodeSnapshot(body === undefined ? tombstoneOf(snapshot) : snapshot);
  } catch {
    // What cannot be stored was an answer all the same: done is done, only its look is not kept.
    return encodeSnapshot({
      status: status <= 599 ? status : 200,
      headers: [],
      body: undefined,
    });
  }
}
