/**
 * @module oncekey/consumers/pg-boss
 * Jobs of pg-boss: translation only.
 *
 * Invariants: jobs of a batch are handled one after another, and those that are done are completed before the batch is said to have
 * failed, so that one failure does not bring the others back. No job is failed by hand: until the batch ends it stays active, and
 * whoever fetched it next could not be told from us. Queues, retries and their delays are left to pg-boss.
 *
 * Crash points: killed in the handler, or after the completion: the job expires and comes again. Interleavings: it expires while it
 * is handled and is fetched elsewhere; its dead letter is sent, and it is not completed.
 */
import { unreachable } from "../core/errors.js";
import type { Idempotency } from "../core/idempotency.js";
import { isOptions } from "../core/policy-checks.js";
import type { Guarantee } from "../core/record.js";
import type { GuaranteeOf, Work } from "../core/work.js";
import { createDelivery, type Deliver, type Handler } from "./delivery.js";
import { type ConsumerOptions, resolveConsumer } from "./options.js";
import type { Verdict } from "./verdict.js";

/** What is needed of `new PgBoss(…)`. */
export interface PgBossClient {
  complete(name: string, id: string, output: object): Promise<unknown>;
  send(name: string, data: object): Promise<unknown>;
}

/** What is needed of a job. */
export interface PgBossJob<D> {
  readonly id: string;
  readonly name: string;
  readonly data: D;
  /** Known with `includeMetadata: true`. */
  readonly retryCount?: number;
}

export interface PgBossOptions<D, R = unknown, G extends Guarantee = Guarantee>
  extends ConsumerOptions<PgBossJob<D>, R, G> {
  /**
   * The queue that dead letters are sent to at once, as `{ data, reason }`. Without it they fail like any other job, and pg-boss lays
   * them into the queue's own dead-letter queue when their retries are spent.
   */
  readonly deadLetter?: string | undefined;
}

/**
 * A handler for `boss.work` that handles each job once. Repeats are compared by `job.data`.
 *
 * It rejects if a job of the batch is not done, whereupon pg-boss retries those that are not.
 *
 * @throws OncekeyError `CONFIGURATION_INVALID` with everything that is wrong with the options.
 * @example
 * await boss.work("orders", handleOnce(idempotency, boss, { consumer: "billing", key: (job) => job.data.orderId }, bill));
 */
export function handleOnce<
  D extends object,
  R,
  Tx,
  G extends Guarantee,
  Held,
  const H extends GuaranteeOf<Tx> = G & GuaranteeOf<Tx>,
>(
  idempotency: Idempotency<Tx, G, boolean, Held>,
  boss: PgBossClient,
  options: PgBossOptions<D, R, H>,
  handler: (job: PgBossJob<D>, work: Work<Tx, H, Held>) => R | Promise<R>,
): (jobs: readonly PgBossJob<D>[]) => Promise<void> {
  // What the types say of transactions holds for what the engine hands over; inside, nobody asks.
  const instance = idempotency as unknown as Idempotency;
  const own = ownProblems(boss, options);
  const compared =
    isOptions(options) && (options.input ?? "body") === "body" ? { ...options, input: dataOf } : options;
  const consumer = resolveConsumer<PgBossJob<D>, R>(instance, compared, handler, { hasBody: true, own });
  const deliver = createDelivery(instance, consumer, handler as unknown as Handler<PgBossJob<D>, R>);
  const { deadLetter } = options;
  return async (jobs) => {
    const undone: unknown[] = [];
    for (const job of jobs) {
      const problem = await handle(boss, deliver, deadLetter, job);
      if (problem !== undefined) undone.push(problem);
    }
    if (undone.length === 1) throw undone[0];
    if (undone.length > 1)
      throw new AggregateError(undone, `${undone.length} jobs of the batch are not done.`);
  };
}

function dataOf({ data }: { readonly data: unknown }): unknown {
  return data;
}

/** @returns why the job is not completed: pg-boss keeps it as the output of the failed try. */
async function handle<D extends object, R>(
  boss: PgBossClient,
  deliver: Deliver<PgBossJob<D>, R>,
  deadLetter: string | undefined,
  job: PgBossJob<D>,
): Promise<Error | undefined> {
  const verdict = await deliver(job, { deliveries: (job.retryCount ?? 0) + 1 });
  try {
    return await carryOut(boss, deadLetter, job, verdict);
  } catch (error) {
    return new Error("The job could not be completed; it comes again.", { cause: error });
  }
}

async function carryOut<D extends object>(
  boss: PgBossClient,
  deadLetter: string | undefined,
  job: PgBossJob<D>,
  verdict: Verdict,
): Promise<Error | undefined> {
  switch (verdict.kind) {
    case "done":
      await boss.complete(job.name, job.id, { how: verdict.how, result: verdict.result });
      return undefined;
    case "put-back":
      return notDone(verdict);
    case "dead-letter":
      if (deadLetter === undefined) return notDone(verdict);
      await boss.send(deadLetter, { data: job.data, reason: verdict.reason });
      await boss.complete(job.name, job.id, { deadLetter: verdict.reason });
      return undefined;
    default:
      return unreachable(verdict);
  }
}

function notDone({ reason, error }: Exclude<Verdict, { kind: "done" }>): Error {
  const text = error instanceof Error ? `${reason}: ${error.message}` : reason;
  return new Error(text, { cause: error });
}

function ownProblems(boss: unknown, options: unknown): Readonly<Record<string, string[]>> {
  const { deadLetter } = isOptions(options) ? options : {};
  const named = deadLetter === undefined || (typeof deadLetter === "string" && deadLetter !== "");
  const found = (boss ?? {}) as Readonly<Record<string, unknown>>;
  const isBoss = ["complete", "send"].every((method) => typeof found[method] === "function");
  return {
    deadLetter: named ? [] : ["deadLetter must be the name of a queue"],
    boss: isBoss ? [] : ["boss, the second argument, must be an instance of PgBoss"],
  };
}
