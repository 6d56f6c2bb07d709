/**
 * @module
 * Calls of concurrent requests, gathered over one turn of the event loop and sent to a server as one statement.
 *
 * Invariants: nobody can observe a batch. One key is in it once, and keys are in order, so two batches never wait for each
 * other; what is wrong with one entry is nobody else's; an entry that the statement passed over (its row was locked) is asked
 * alone and delays nobody. An entry's time begins when it is queued: one that was not sent in time has changed nothing, of
 * one that was sent and not answered nothing is known. Everything is bounded.
 *
 * What a call means is left to the store.
 */
import { systemClock, type Timer } from "../core/clock.js";
import { OncekeyError } from "../core/errors.js";
import { MIB } from "../core/limits.js";
import { type BatchPort, type Entry, sendBatch } from "./batch-sending.js";

export type { Asked, BatchFault, BatchPort } from "./batch-sending.js";

export interface Batches<Request, Answer> {
  /** @throws OncekeyError `STORE_UNAVAILABLE` if it was not sent in time; else what `send` or `alone` threw. */
  submit(request: Request): Promise<Answer>;
  /** Resolves once everything submitted so far has been answered. */
  drained(): Promise<void>;
}

/** While one batch is on its way the next is gathered; a third would only make them smaller. */
const MAX_IN_FLIGHT = 2;
/** The second need not wait for the first if it is as large as this, or has waited as long: one slow batch holds up nobody. */
const LARGE = 64;
const PATIENCE_MS = 10;
/** What one statement takes, so that nobody waits long for its end. */
const MAX_ENTRIES = 128;
const MAX_BYTES = MIB;
/** More than a burst; what is above it could not be answered in time anyway. */
const MAX_PENDING = 10_000;
const MAX_PENDING_BYTES = 64 * MIB;

/** @param timeoutMs how long an entry may wait to be sent. */
export function createBatches<Request, Answer>(
  port: BatchPort<Request, Answer>,
  timeoutMs: number,
): Batches<Request, Answer> {
  let queued: Entry<Request, Answer>[] = [];
  let inFlight = 0;
  let scheduled = false;
  const room = createRoom();
  const alarm = createAlarm(() => {
    failOverdue();
    schedule();
  });

  function submit(request: Request): Promise<Answer> {
    const bytes = port.bytesOf(request);
    if (!room.enter(bytes)) return Promise.reject(overflow());
    const answer = new Promise<Answer>((resolve, reject) => {
      queued.push({ request, bytes, endsAtMs: systemClock.monotonicMs() + timeoutMs, resolve, reject });
      schedule();
    });
    const left = (): void => room.leave(bytes);
    answer.then(left, left);
    return answer;
  }

  /** Sends in the next turn, or when it is time for those who wait behind a batch. */
  function schedule(): void {
    const [oldest] = queued;
    if (oldest === undefined || scheduled) return;
    const queuedAtMs = oldest.endsAtMs - timeoutMs;
    const nowMs = systemClock.monotonicMs();
    const isWorthIt = queued.length >= LARGE || nowMs - queuedAtMs >= PATIENCE_MS;
    if (inFlight === 0 || (inFlight < MAX_IN_FLIGHT && isWorthIt)) {
      scheduled = true;
      setImmediate(flush);
      return;
    }
    alarm.at(inFlight < MAX_IN_FLIGHT ? queuedAtMs + PATIENCE_MS : oldest.endsAtMs, nowMs);
  }

  function flush(): void {
    scheduled = false;
    failOverdue();
    const batch = queued.slice(0, fitting(queued));
    queued = queued.slice(batch.length);
    if (batch.length === 0) return;
    inFlight += 1;
    void sendBatch(port, batch).then(() => {
      inFlight -= 1;
      schedule();
    });
    schedule();
  }

  /** All wait equally long, so those whose time is over stand first. */
  function failOverdue(): void {
    alarm.cancel();
    const nowMs = systemClock.monotonicMs();
    const inTime = queued.findIndex(({ endsAtMs }) => endsAtMs > nowMs);
    const overdue = queued.slice(0, inTime === -1 ? queued.length : inTime);
    queued = queued.slice(overdue.length);
    for (const { reject } of overdue) reject(notSent(timeoutMs));
  }

  return { submit, drained: room.drained };
}

/** Counts who has not been answered. */
function createRoom() {
  let pending = 0;
  let pendingBytes = 0;
  let onDrained: (() => void)[] = [];
  return {
    /** By what waits already: a result that is larger than the bound itself could never be stored otherwise. */
    enter(bytes: number): boolean {
      if (pending >= MAX_PENDING || pendingBytes >= MAX_PENDING_BYTES) return false;
      pending += 1;
      pendingBytes += bytes;
      return true;
    },
    leave(bytes: number): void {
      pending -= 1;
      pendingBytes -= bytes;
      if (pending > 0) return;
      const told = onDrained;
      onDrained = [];
      for (const tell of told) tell();
    },
    drained: (): Promise<void> =>
      new Promise((resolve) => {
        if (pending === 0) resolve();
        else onDrained.push(resolve);
      }),
  };
}

/** One timer, for the earliest that was asked for. */
function createAlarm(wake: () => void) {
  let next: { readonly atMs: number; readonly timer: Timer } | undefined;
  const cancel = (): void => {
    next?.timer.cancel();
    next = undefined;
  };
  return {
    cancel,
    at(atMs: number, nowMs: number): void {
      if (next !== undefined && next.atMs <= atMs) return;
      cancel();
      next = { atMs, timer: systemClock.setTimer(wake, atMs - nowMs) };
    },
  };
}

/** How many of the first go together; at least one. */
function fitting(queued: readonly { readonly bytes: number }[]): number {
  let bytes = 0;
  let count = 0;
  for (const entry of queued) {
    bytes += entry.bytes;
    if (count > 0 && (count === MAX_ENTRIES || bytes > MAX_BYTES)) break;
    count += 1;
  }
  return count;
}

function notSent(timeoutMs: number): OncekeyError<"STORE_UNAVAILABLE"> {
  const message = `The database was busy for longer than ${timeoutMs} ms. Nothing was changed; try again.`;
  return new OncekeyError("STORE_UNAVAILABLE", message, { retryAfterMs: 1_000 });
}

function overflow(): OncekeyError<"STORE_UNAVAILABLE"> {
  const message = `More than ${MAX_PENDING} calls, or ${MAX_PENDING_BYTES} bytes, wait for the database. Nothing was changed; try again.`;
  return new OncekeyError("STORE_UNAVAILABLE", message, { retryAfterMs: 1_000 });
}
