/**
 * @module
 * Sending one batch, and answering everybody in it.
 *
 * Invariants: a key is sent once, and keys are sent in order; what is wrong with one entry fails nobody else; whoever has to
 * be asked alone is not waited for. When batches are sent, and how many at a time, is left to `batches.ts`.
 */
import { systemClock } from "../core/clock.js";
import type { RecordKey } from "../core/record.js";

/** A request and when its caller has waited long enough, on the monotonic clock. */
export interface Asked<Request> {
  readonly request: Request;
  readonly endsAtMs: number;
}

/**
 * What an error says of a batch.
 *
 * - `entry`: the data of one of its entries are at fault.
 * - `passing`: the same statement may succeed at once (a serialization failure, a deadlock, a lost connection).
 * - `other`: neither; nothing is gained by asking again now.
 */
export type BatchFault = "entry" | "passing" | "other";

export interface BatchPort<Request, Answer> {
  keyOf(request: Request): RecordKey;
  /** Roughly what it adds to the statement beside its key. */
  bytesOf(request: Request): number;
  /** One statement for all; answers in the order asked, `undefined` for an entry that was passed over. */
  send(asked: readonly Asked<Request>[]): Promise<readonly (Answer | undefined)[]>;
  /** Does one request by whatever it takes. */
  alone(asked: Asked<Request>): Promise<Answer>;
  /** The answer to a request whose key another one of the batch (`first`) was sent with; `undefined`: ask it alone. */
  judge?(request: Request, first: Request, answer: Answer): Answer | undefined;
  faultOf(error: unknown): BatchFault;
}

/** An entry of a batch, with whoever waits for it. */
export interface Entry<Request, Answer> extends Asked<Request> {
  readonly bytes: number;
  readonly resolve: (answer: Answer | PromiseLike<Answer>) => void;
  readonly reject: (error: unknown) => void;
}

type Sent<Answer> =
  | { readonly kind: "answered"; readonly answer: Answer }
  | { readonly kind: "passed-over" }
  | { readonly kind: "failed"; readonly error: unknown };

/** Sends a batch and answers everybody in it. Those who have to be asked alone are not waited for. Never rejects. */
export async function sendBatch<Request, Answer>(
  port: BatchPort<Request, Answer>,
  batch: readonly Entry<Request, Answer>[],
): Promise<void> {
  try {
    await sendGroups(port, batch);
  } catch (error) {
    // A fault of the port itself: nobody may wait for ever, and who has been answered hears nothing more.
    for (const { reject } of batch) reject(error);
  }
}

async function sendGroups<Request, Answer>(
  port: BatchPort<Request, Answer>,
  batch: readonly Entry<Request, Answer>[],
): Promise<void> {
  const groups = byKey(port, batch);
  const firsts = groups.map(([first]) => first);
  const results = await sendFirsts(port, firsts);
  for (const [index, [first, ...others]] of groups.entries()) {
    const result = results[index] ?? { kind: "passed-over" };
    const done = answerFirst(port, first, result);
    for (const other of others) answerOther(port, other, first, result, done);
  }
}

type Group<Entry> = readonly [first: Entry, ...others: Entry[]];

function byKey<Request, Answer>(
  port: BatchPort<Request, Answer>,
  batch: readonly Entry<Request, Answer>[],
): readonly Group<Entry<Request, Answer>>[] {
  const groups = new Map<RecordKey, [Entry<Request, Answer>, ...Entry<Request, Answer>[]]>();
  for (const entry of batch) {
    const key = port.keyOf(entry.request);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [entry]);
    else group.push(entry);
  }
  return [...groups].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, group]) => group);
}

async function sendFirsts<Request, Answer>(
  port: BatchPort<Request, Answer>,
  asked: readonly Asked<Request>[],
): Promise<readonly Sent<Answer>[]> {
  try {
    const answers = await sendTwice(port, asked);
    return answers.map((answer) => (answer === undefined ? PASSED_OVER : { kind: "answered", answer }));
  } catch (error) {
    const failed = { kind: "failed", error } as const;
    if (asked.length === 1 || port.faultOf(error) !== "entry") return asked.map(() => failed);
    const singly: Sent<Answer>[] = [];
    for (const one of asked) singly.push(...(await sendFirsts(port, [one])));
    return singly;
  }
}

const PASSED_OVER = { kind: "passed-over" } as const;

/** What failed in passing is repeated once: with the same tokens, so that it finds its own doing if it has landed. */
async function sendTwice<Request, Answer>(
  port: BatchPort<Request, Answer>,
  asked: readonly Asked<Request>[],
): Promise<readonly (Answer | undefined)[]> {
  try {
    return await port.send(asked);
  } catch (error) {
    const inTime = (asked[0]?.endsAtMs ?? 0) > systemClock.monotonicMs();
    if (!inTime || port.faultOf(error) !== "passing") throw error;
    return await port.send(asked);
  }
}

/** @returns settles when it has been answered; never rejects. */
function answerFirst<Request, Answer>(
  port: BatchPort<Request, Answer>,
  entry: Entry<Request, Answer>,
  result: Sent<Answer>,
): Promise<unknown> {
  if (result.kind === "passed-over") return alone(port, entry);
  if (result.kind === "answered") entry.resolve(result.answer);
  else entry.reject(result.error);
  return Promise.resolve();
}

function answerOther<Request, Answer>(
  port: BatchPort<Request, Answer>,
  entry: Entry<Request, Answer>,
  first: Asked<Request>,
  result: Sent<Answer>,
  done: Promise<unknown>,
): void {
  if (result.kind === "failed" && port.faultOf(result.error) !== "entry") {
    entry.reject(result.error);
    return;
  }
  const judged =
    result.kind === "answered" ? port.judge?.(entry.request, first.request, result.answer) : undefined;
  if (judged !== undefined) entry.resolve(judged);
  else void done.then(() => alone(port, entry));
}

async function alone<Request, Answer>(
  port: BatchPort<Request, Answer>,
  entry: Entry<Request, Answer>,
): Promise<void> {
  try {
    entry.resolve(await port.alone(entry));
  } catch (error) {
    entry.reject(error);
  }
}
