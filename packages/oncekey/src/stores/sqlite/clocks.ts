/**
 * @module
 * Judging leases by the wall clock of the host, which people and NTP may set.
 *
 * Instants in the file are wall clock, because it is the one clock that the processes of a host share. So:
 *
 * - A lease never ends further away than it is long. One that seems to was written before the clock was set
 *   back, and counts as lapsed (a second of tolerance is left to NTP).
 * - When the wall clock moved by more than a second against the monotonic one (it was set, or the host
 *   slept), nobody's lease is judged for one lease more: a holder that is alive extends its claim in that time.
 *
 * What this cannot see: a jump while no process of this package was running, and retention, which simply
 * ends by the new clock.
 */
import type { Clock } from "../../core/clock.js";
import type { StoredRecord } from "../../core/record.js";

const TOLERANCE_MS = 1_000;

/** The time of one statement. */
export interface Moment {
  readonly nowMs: number;
  /** Time since the wall clock was seen to jump; `Infinity` if it never was. */
  readonly sinceJumpMs: number;
}

/** Reads both clocks and compares them with the last time. */
export function watchClocks(clock: Clock): () => Moment {
  let offsetMs = clock.now() - clock.monotonicMs();
  let jumpedAtMs = Number.NEGATIVE_INFINITY;
  return () => {
    const nowMs = clock.now();
    const monotonicMs = clock.monotonicMs();
    if (Math.abs(nowMs - monotonicMs - offsetMs) > TOLERANCE_MS) jumpedAtMs = monotonicMs;
    offsetMs = nowMs - monotonicMs;
    return { nowMs: Math.round(nowMs), sinceJumpMs: monotonicMs - jumpedAtMs };
  };
}

/** The record with the lease that it has in truth; the same object if its own is believed. */
export function judged(record: StoredRecord, { nowMs, sinceJumpMs }: Moment): StoredRecord {
  if (record.state !== "claimed") return record;
  const remainingMs = record.leaseEndsAtMs - nowMs;
  const credible = remainingMs <= record.leaseMs + TOLERANCE_MS;
  if (credible && remainingMs > 0) return record;
  const caution = Math.ceil(record.leaseMs - sinceJumpMs);
  if (caution > 0) return endingIn(record, caution, nowMs);
  return credible ? record : endingIn(record, 0, nowMs);
}

function endingIn(record: StoredRecord, remainingMs: number, nowMs: number): StoredRecord {
  const leaseEndsAtMs = nowMs + remainingMs;
  return { ...record, leaseEndsAtMs, expiresAtMs: leaseEndsAtMs + record.retentionMs };
}
