/**
 * @module oncekey/consumers/sqs
 * Batches of SQS that Lambda hands over: translation only.
 *
 * Invariants: every record of the event is handled, or reported in `batchItemFailures`, never neither; the function answers before
 * Lambda's time is over; of a group of a FIFO queue nothing is handled after its first record that is not done. The queue, its
 * visibility timeout and its redrive policy are left to the application.
 *
 * Crash points: killed in the handler, or after the completion: all records come again after the visibility timeout. Interleavings:
 * a repeated key in one batch; the time is over while a record is handled; the visibility of a record cannot be changed.
 */
import type { SQSBatchResponse, SQSEvent, SQSRecord } from "aws-lambda";
import type { Clock } from "../core/clock.js";
import { unreachable } from "../core/errors.js";
import type { Idempotency } from "../core/idempotency.js";
import { durationProblems, isOptions } from "../core/policy-checks.js";
import type { Guarantee } from "../core/record.js";
import type { GuaranteeOf, Work } from "../core/work.js";
import { createDelivery, type Deliver, type Handler } from "./delivery.js";
import { type ConsumerOptions, resolveConsumer } from "./options.js";
import type { DeadLetterReason, Verdict } from "./verdict.js";

export interface SqsOptions<R = unknown, G extends Guarantee = Guarantee>
  extends ConsumerOptions<SQSRecord, R, G> {
  /** How many records, or groups of a FIFO queue, are handled at a time. @defaultValue 10 */
  readonly concurrency?: number | undefined;
  /**
   * Hides a record that is put back for so many seconds: `ChangeMessageVisibility`. Without it, or if it rejects, a record comes again
   * when its visibility timeout is over.
   */
  readonly changeVisibility?: ((record: SQSRecord, seconds: number) => unknown) | undefined;
  /**
   * Keeps a dead letter, whereupon SQS deletes the record: sends it to a queue of its own, say. Rejects, and the record comes again.
   * Without it a dead letter fails like any other record, until the redrive policy of the queue moves it.
   */
  readonly deadLetter?:
    | ((record: SQSRecord, why: { readonly reason: DeadLetterReason; readonly error: unknown }) => unknown)
    | undefined;
  /** What is left of Lambda's time when the records that are not done are reported. @defaultValue 1000 */
  readonly reserveMs?: number | undefined;
}

/** What is needed of Lambda's context. */
export interface LambdaContext {
  getRemainingTimeInMillis(): number;
}

const DEFAULT_CONCURRENCY = 10;
/** The largest batch that Lambda hands over. */
const MAX_CONCURRENCY = 10_000;
const DEFAULT_RESERVE_MS = 1_000;
/** SQS hides nothing for longer. */
const MAX_VISIBILITY_SECONDS = 43_200;

/**
 * A handler for Lambda that handles each record once, and reports those that are to come again. Needs `ReportBatchItemFailures` in the
 * event source mapping. Never rejects.
 *
 * @throws OncekeyError `CONFIGURATION_INVALID` with everything that is wrong with the options.
 * @example
 * export const handler = handleOnce(idempotency, { consumer: "billing", key: (r) => JSON.parse(r.body).orderId }, bill);
 */
export function handleOnce<
  R,
  Tx,
  G extends Guarantee,
  Held,
  const H extends GuaranteeOf<Tx> = G & GuaranteeOf<Tx>,
>(
  idempotency: Idempotency<Tx, G, boolean, Held>,
  options: SqsOptions<R, H>,
  handler: (record: SQSRecord, work: Work<Tx, H, Held>) => R | Promise<R>,
): (event: SQSEvent, context?: LambdaContext) => Promise<SQSBatchResponse> {
  // What the types say of transactions holds for what the engine hands over; inside, nobody asks.
  const instance = idempotency as unknown as Idempotency;
  const own = ownProblems(options);
  const consumer = resolveConsumer<SQSRecord, R>(instance, options, handler, { hasBody: true, own });
  const { concurrency = DEFAULT_CONCURRENCY, reserveMs = DEFAULT_RESERVE_MS } = options;
  const { clock } = instance.internals;
  const carrier: Carrier = {
    deliver: createDelivery(instance, consumer, handler as unknown as Handler<SQSRecord, R>, bodyOf),
    changeVisibility: options.changeVisibility,
    deadLetter: options.deadLetter,
  };
  return async ({ Records: records }, context) => {
    const open = new Set(records.map(({ messageId }) => messageId));
    const time = timeLeft(context, reserveMs, clock);
    const lines = linesOf(records);
    const worker = async () => {
      for (let line = lines.shift(); line !== undefined; line = lines.shift()) {
        await handleLine(carrier, line, time.over, open);
      }
    };
    const workers = Array.from({ length: Math.min(concurrency, lines.length) }, worker);
    await Promise.race([Promise.all(workers), time.ran]);
    time.end();
    return { batchItemFailures: [...open].map((itemIdentifier) => ({ itemIdentifier })) };
  };
}

interface Carrier {
  readonly deliver: Deliver<SQSRecord, unknown>;
  readonly changeVisibility: SqsOptions["changeVisibility"];
  readonly deadLetter: SqsOptions["deadLetter"];
}

function bodyOf({ body }: SQSRecord): string {
  return body;
}

/** What has to be handled in order: a group of a FIFO queue. Each record of another queue stands alone, whatever its group. */
function linesOf(records: readonly SQSRecord[]): SQSRecord[][] {
  const lines = new Map<string, SQSRecord[]>();
  for (const record of records) {
    const group = record.eventSourceARN.endsWith(".fifo") ? record.attributes.MessageGroupId : undefined;
    const name = group === undefined ? `message ${record.messageId}` : `group ${group}`;
    const line = lines.get(name) ?? [];
    line.push(record);
    lines.set(name, line);
  }
  return [...lines.values()];
}

/** Takes off `open` what SQS may delete. The rest of a line stays, as soon as one of it is not done. */
async function handleLine(
  carrier: Carrier,
  line: readonly SQSRecord[],
  over: AbortSignal,
  open: Set<string>,
): Promise<void> {
  for (const record of line) {
    if (over.aborted) return;
    const deliveries = Number(record.attributes.ApproximateReceiveCount) || 1;
    const verdict = await carrier.deliver(record, { deliveries, signal: over });
    if (!(await carryOut(carrier, record, verdict))) return;
    open.delete(record.messageId);
  }
}

/** @returns whether SQS may delete the record. */
async function carryOut(carrier: Carrier, record: SQSRecord, verdict: Verdict): Promise<boolean> {
  const { changeVisibility, deadLetter } = carrier;
  switch (verdict.kind) {
    case "done":
      return true;
    case "put-back": {
      const seconds = Math.min(MAX_VISIBILITY_SECONDS, Math.ceil(verdict.delayMs / 1_000));
      await succeeds(() => changeVisibility?.(record, seconds));
      return false;
    }
    case "dead-letter":
      if (deadLetter === undefined) return false;
      return succeeds(() => deadLetter(record, { reason: verdict.reason, error: verdict.error }));
    default:
      return unreachable(verdict);
  }
}

async function succeeds(action: () => unknown): Promise<boolean> {
  try {
    await action();
    return true;
  } catch {
    // The record comes again after its visibility timeout, which is what happens without the call too.
    return false;
  }
}

interface Time {
  readonly over: AbortSignal;
  readonly ran: Promise<void>;
  end(): void;
}

/** Lambda stops a function in the middle when its time is over, and then all of the batch comes again. */
function timeLeft(context: LambdaContext | undefined, reserveMs: number, clock: Clock): Time {
  const over = new AbortController();
  if (context === undefined) {
    return { over: over.signal, ran: new Promise(() => undefined), end: () => undefined };
  }
  let timer: { cancel(): void } | undefined;
  const ran = new Promise<void>((resolve) => {
    const ends = () => {
      over.abort(new Error("The time of the function is nearly over."));
      resolve();
    };
    timer = clock.setTimer(ends, Math.max(0, context.getRemainingTimeInMillis() - reserveMs));
  });
  return { over: over.signal, ran, end: () => timer?.cancel() };
}

function ownProblems(options: unknown): Readonly<Record<string, string[]>> {
  const { concurrency, changeVisibility, deadLetter, reserveMs } = isOptions(options) ? options : {};
  const count = concurrency ?? DEFAULT_CONCURRENCY;
  const counts =
    Number.isSafeInteger(count) && (count as number) >= 1 && (count as number) <= MAX_CONCURRENCY;
  const isFunction = (value: unknown) => value === undefined || typeof value === "function";
  return {
    concurrency: counts ? [] : [`concurrency must be a whole number from 1 to ${MAX_CONCURRENCY}`],
    changeVisibility: isFunction(changeVisibility) ? [] : ["changeVisibility must be a function"],
    deadLetter: isFunction(deadLetter) ? [] : ["deadLetter must be a function"],
    reserveMs: reserveMs === undefined ? [] : durationProblems("reserveMs", reserveMs),
  };
}
