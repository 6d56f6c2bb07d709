/**
 * @module
 * Many alarms on few timers.
 *
 * A claim that lives for a millisecond must not pay for a timer of the platform. Almost all alarms here have
 * one of a handful of delays, so those of one delay stand in a list in the order they will ring, and each
 * list has one timer, for its head. Setting and cancelling an alarm is linking and unlinking.
 *
 * Invariant: an alarm rings at most once, never early and never after `cancel`.
 */
import type { Clock, Timer } from "./clock.js";

export interface Alarm {
  cancel(): void;
}

export interface Schedule {
  /** Rings once after `delayMs`. `ring` must not throw. */
  after(delayMs: number, ring: () => void): Alarm;
}

interface Entry extends Alarm {
  readonly dueMs: number;
  readonly ring: () => void;
  previous: Entry | undefined;
  next: Entry | undefined;
  linked: boolean;
}

interface Lane {
  head: Entry | undefined;
  tail: Entry | undefined;
  timer: Timer | undefined;
}

/**
 * @param keepAlive whether a pending alarm keeps the process running. Then the timer of an empty list is
 * cancelled at once; otherwise it is left to fire, which is cheaper.
 */
export function createSchedule(clock: Clock, keepAlive: boolean): Schedule {
  const lanes = new Map<number, Lane>();

  function ringDue(delayMs: number, lane: Lane): void {
    lane.timer = undefined;
    const nowMs = clock.monotonicMs();
    for (let entry = lane.head; entry !== undefined && entry.dueMs <= nowMs; entry = lane.head) {
      unlink(lane, entry);
      entry.ring();
    }
    if (lane.head !== undefined) arm(delayMs, lane);
    else if (lane.timer === undefined) lanes.delete(delayMs);
  }

  function arm(delayMs: number, lane: Lane): void {
    if (lane.head === undefined || lane.timer !== undefined) return;
    const waitMs = Math.max(0, lane.head.dueMs - clock.monotonicMs());
    lane.timer = clock.setTimer(() => ringDue(delayMs, lane), waitMs, keepAlive);
  }

  function cancel(delayMs: number, lane: Lane, entry: Entry): void {
    if (!entry.linked) return;
    unlink(lane, entry);
    if (!keepAlive || lane.head !== undefined) return;
    lane.timer?.cancel();
    lane.timer = undefined;
    lanes.delete(delayMs);
  }

  return {
    after(delayMs, ring) {
      const lane = lanes.get(delayMs) ?? { head: undefined, tail: undefined, timer: undefined };
      lanes.set(delayMs, lane);
      const entry: Entry = {
        dueMs: clock.monotonicMs() + delayMs,
        ring,
        previous: lane.tail,
        next: undefined,
        linked: true,
        cancel: () => cancel(delayMs, lane, entry),
      };
      if (lane.tail === undefined) lane.head = entry;
      else lane.tail.next = entry;
      lane.tail = entry;
      arm(delayMs, lane);
      return entry;
    },
  };
}

function unlink(lane: Lane, entry: Entry): void {
  if (entry.previous === undefined) lane.head = entry.next;
  else entry.previous.next = entry.next;
  if (entry.next === undefined) lane.tail = entry.previous;
  else entry.next.previous = entry.previous;
  entry.previous = undefined;
  entry.next = undefined;
  entry.linked = false;
}
