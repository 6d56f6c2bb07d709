/**
 * @module
 * One case of the contract, and the few steps that most cases are made of.
 */
import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import { CODES, type ErrorCode } from "../../core/errors.js";
import type { HttpContractContext } from "./context.js";
import {
  fieldValue,
  fieldValues,
  type HeaderLine,
  type RawRequest,
  type RawResponse,
} from "./raw-message.js";
import { json, type Reply } from "./route.js";

export interface HttpCase {
  readonly name: string;
  /** The fault it guards against, or the section of the standard. */
  readonly why: string;
  /** Left out where the setup has no transactional store. */
  readonly needs?: "transactions" | undefined;
  run(context: HttpContractContext): Promise<void>;
}

export { delay };

/** A JSON request with a key; `undefined` leaves the key or the body out. */
export function post(
  path: string,
  key: string | undefined,
  body: unknown = { amount: 10 },
  headers: readonly HeaderLine[] = [],
): RawRequest {
  const keyLines: HeaderLine[] = key === undefined ? [] : [["Idempotency-Key", key]];
  return {
    method: "POST",
    path,
    headers: [["Content-Type", "application/json"], ...keyLines, ...headers],
    body: JSON.stringify(body),
  };
}

/** Counts what it is called for; the count is the proof of "did not run again". */
export interface Counter {
  count: number;
}

export function counter(): Counter {
  return { count: 0 };
}

export function isReplay(response: RawResponse): boolean {
  return fieldValue(response, "idempotency-replayed") === "true";
}

/** Said of one message or one moment, not of the answer. */
const OF_THE_MESSAGE = new Set([
  ...["date", "connection", "keep-alive", "transfer-encoding", "content-length"],
  ...["idempotency-replayed", "access-control-expose-headers"],
]);

function answerHeaders({ headers }: RawResponse): Map<string, string[]> {
  const answer = new Map<string, string[]>();
  for (const [spelled, value] of headers) {
    const name = spelled.toLowerCase();
    if (!OF_THE_MESSAGE.has(name)) answer.set(name, [...(answer.get(name) ?? []), value]);
  }
  return new Map([...answer].toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/** `first` came from the handler; `again` has to be the same answer, and say that it is a replay. */
export function assertReplay(first: RawResponse, again: RawResponse): void {
  assert.equal(isReplay(first), false, "the first answer says that it is a replay");
  assertSameAnswer(first, again);
  assert.equal(isReplay(again), true, `the repeat is not marked as a replay: ${describe(again)}`);
}

/** Status, header lines and bytes are equal, whichever of the two is a replay. */
export function assertSameAnswer(one: RawResponse, other: RawResponse): void {
  assert.equal(other.status, one.status, `${describe(other)} in place of ${describe(one)}`);
  assert.deepEqual(answerHeaders(other), answerHeaders(one));
  assert.ok(one.complete && other.complete, "an answer broke off");
  assert.ok(one.body.equals(other.body), `the bodies differ: ${describe(one)}, ${describe(other)}`);
}

/** The handler has answered this request itself. */
export function assertExecuted(response: RawResponse, status: number): void {
  assert.equal(response.status, status, describe(response));
  assert.ok(response.complete, "the answer broke off");
  assert.equal(isReplay(response), false, "an executed answer says that it is a replay");
}

interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly code: string;
  readonly businessCode: number;
  readonly retryable: boolean;
}

/** A refusal of ours (RFC 9457), with everything that its code promises. */
export function assertRefused(response: RawResponse, code: ErrorCode): Problem {
  const facts = CODES[code];
  assert.equal(response.status, facts.status, `${code} was expected: ${describe(response)}`);
  assert.match(fieldValue(response, "content-type") ?? "", /^application\/problem\+json\b/);
  const problem = JSON.parse(response.body.toString("utf8")) as Problem;
  assert.equal(problem.code, code);
  assert.equal(problem.status, facts.status);
  assert.equal(problem.businessCode, facts.businessCode);
  assert.equal(problem.retryable, facts.retryable);
  assert.equal(isReplay(response), false, "a refusal says that it is a replay");
  const retryAfter = fieldValue(response, "retry-after");
  if (facts.retryable)
    assert.match(retryAfter ?? "", /^[1-9]\d*$/, "a refusal that may be repeated says when");
  else assert.equal(retryAfter, undefined, "a refusal that stays has nothing to retry after");
  return problem;
}

/** Waits until `condition` holds; the event loop decides when, a slow machine may take its time. */
export async function until(condition: () => boolean, what: string): Promise<void> {
  for (let waitedMs = 0; !condition(); waitedMs += 5) {
    assert.ok(waitedMs < 10_000, `never happened: ${what}`);
    await delay(5);
  }
}

/** A gate that work waits at until the case opens it. */
export interface Gate {
  readonly opened: Promise<void>;
  open(): void;
}

export function gate(): Gate {
  let open: (() => void) | undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open: () => open?.() };
}

/** Work that waits, in each of its runs, until the case opens it. */
export interface HeldWork {
  readonly runs: Counter;
  open(): void;
  handle(): Promise<Reply>;
}

/** @param reply what run `number` (from 1) answers. */
export function heldWork(reply: (number: number) => Reply = () => json(1, 201)): HeldWork {
  const { opened, open } = gate();
  const runs = counter();
  return {
    runs,
    open,
    async handle() {
      const number = ++runs.count;
      await opened;
      return reply(number);
    },
  };
}

export function describe(response: RawResponse): string {
  return `${response.status} ${JSON.stringify(response.body.toString("utf8", 0, 200))}`;
}

export { fieldValue, fieldValues };
