/**
 * @module oncekey/consumers/bullmq
 * Jobs of BullMQ: translation only.
 *
 * Invariants: what the processor throws says to BullMQ what becomes of the job, and it is known by its name, so that BullMQ is not
 * loaded here; only a handler that failed spends one of the job's attempts; the lock of a job that runs is renewed in step with
 * its lease, and its loss is heard through the signal of the work. Workers, queues and concurrency are left to the application.
 *
 * Crash points: killed in the handler, or after the completion: the lock lapses, and BullMQ takes the job for stalled and runs it
 * again. Interleavings: the lock is lost while the handler runs, so that the job runs elsewhere too; a job cannot be moved back.
 */
import type { Job } from "bullmq";
import type { Clock } from "../core/clock.js";
import { unreachable } from "../core/errors.js";
import type { Idempotency } from "../core/idempotency.js";
import { isOptions } from "../core/policy-checks.js";
import type { Guarantee } from "../core/record.js";
import type { GuaranteeOf, Work } from "../core/work.js";
import { createDelivery, type Handler } from "./delivery.js";
import { type ConsumerOptions, resolveConsumer } from "./options.js";
import type { Verdict } from "./verdict.js";

/** A processor for `new Worker(queue, processor)`. */
export type Processor<D, R, N extends string> = (
  job: Job<D, R, N>,
  token?: string,
  signal?: AbortSignal,
) => Promise<R>;

/** The lock is renewed as often as the lease: two renewals may fail. */
const RENEWALS_PER_LEASE = 3;

/**
 * A processor that handles each job once. Its result is the job's `returnvalue`, also of a repeat. Repeats are compared by `job.data`.
 *
 * @throws OncekeyError `CONFIGURATION_INVALID` with everything that is wrong with the options.
 * @example
 * new Worker("orders", handleOnce(idempotency, { consumer: "billing", key: (job) => job.data.orderId }, bill), { connection });
 */
export function handleOnce<
  D,
  R,
  N extends string,
  Tx,
  G extends Guarantee,
  Held,
  const H extends GuaranteeOf<Tx> = G & GuaranteeOf<Tx>,
>(
  idempotency: Idempotency<Tx, G, boolean, Held>,
  options: ConsumerOptions<Job<D, R, N>, R, H>,
  handler: (job: Job<D, R, N>, work: Work<Tx, H, Held>) => R | Promise<R>,
): Processor<D, R, N> {
  // What the types say of transactions holds for what the engine hands over; inside, nobody asks.
  const instance = idempotency as unknown as Idempotency;
  const compared =
    isOptions(options) && (options.input ?? "body") === "body" ? { ...options, input: dataOf } : options;
  const consumer = resolveConsumer<Job<D, R, N>, R>(instance, compared, handler, { hasBody: true });
  const deliver = createDelivery(instance, consumer, handler as unknown as Handler<Job<D, R, N>, R>);
  const { clock, emit } = instance.internals;
  // BullMQ makes a signal only for processors that name three parameters.
  return async (job, token, signal) => {
    const lock = keepLocked(job, token, consumer.policy.leaseMs, clock);
    const taken = signal === undefined ? lock.lost : AbortSignal.any([signal, lock.lost]);
    try {
      const verdict = await deliver(job, { deliveries: job.attemptsStarted, signal: taken });
      if (verdict.kind === "done") return verdict.result as R;
      if (!returns(verdict)) throw refusal(verdict);
      const moved = await moveBack(job, token, clock.now() + verdict.delayMs);
      if (!moved) emit({ type: "warning", text: `${consumer.operation}: ${NOT_MOVED}` });
      throw named("DelayedError", `The job is put back: ${verdict.reason}.`);
    } finally {
      lock.end();
    }
  };
}

function dataOf({ data }: { readonly data: unknown }): unknown {
  return data;
}

const NOT_MOVED = "a job could not be put back; it comes again once its lock has lapsed";

/** Whether the job comes again without having spent an attempt. */
function returns(
  verdict: Exclude<Verdict, { kind: "done" }>,
): verdict is Extract<Verdict, { delayMs: number }> {
  return verdict.kind === "put-back" && verdict.reason !== "failed";
}

/** What BullMQ counts as a failed attempt, or as the last one. */
function refusal(verdict: Exclude<Verdict, { kind: "done" }>): unknown {
  switch (verdict.kind) {
    case "put-back":
      return verdict.error ?? new Error("The handler returned what is not kept.");
    case "dead-letter":
      return named("UnrecoverableError", textOf(verdict), verdict.error);
    default:
      return unreachable(verdict);
  }
}

/** The failed reason of the job: ours, and what the handler said where it was the handler. */
function textOf({ reason, error }: Extract<Verdict, { kind: "dead-letter" }>): string {
  return error instanceof Error ? `${reason}: ${error.message}` : reason;
}

/** BullMQ knows its errors by their names too, so that they may come from another copy of it. */
function named(name: string, text: string, cause?: unknown): Error {
  const error = new Error(text, { cause });
  error.name = name;
  return error;
}

/** @returns whether it was moved; otherwise it is still active, and stalled as soon as its lock lapses. */
async function moveBack(job: Job, token: string | undefined, at: number): Promise<boolean> {
  try {
    await job.moveToDelayed(at, token);
    return true;
  } catch {
    return false;
  }
}

interface Lock {
  /** Fires when the lock belongs to somebody else. */
  readonly lost: AbortSignal;
  end(): void;
}

/** Ends with the delivery, which is bounded, so that no job is held for ever. */
function keepLocked(job: Job, token: string | undefined, leaseMs: number, clock: Clock): Lock {
  const lost = new AbortController();
  let ended = false;
  const renew = async () => {
    try {
      const held = await job.extendLock(token ?? "", leaseMs);
      if (!held && !ended) lost.abort(new Error("The lock of the job was lost."));
    } catch {
      // Whether it still is ours, the next renewal shows; the claim does not depend on it.
    }
    if (!ended && !lost.signal.aborted) timer = clock.setTimer(() => void renew(), periodMs, false);
  };
  const periodMs = leaseMs / RENEWALS_PER_LEASE;
  let timer = clock.setTimer(() => void renew(), periodMs, false);
  return {
    lost: lost.signal,
    end() {
      ended = true;
      timer.cancel();
    },
  };
}
