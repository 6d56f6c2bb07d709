/**
 * @module
 * Claiming: all claims of one turn of the event loop in one statement.
 *
 * The statement inserts what is not there and gives back what is. What a claim means for a record that is there is decided by
 * the transition of the core: in most cases nothing changes, and the claim has cost one round trip. Where it changes something (a
 * lapsed claim is taken over), it is written by compare-and-set, on the very record that was read.
 */
import { systemClock } from "../../core/clock.js";
import { OncekeyError } from "../../core/errors.js";
import { compareFingerprints } from "../../core/fingerprint.js";
import type { ClaimOutcome, ClaimRequest } from "../../core/store.js";
import { claimRecord } from "../../core/transitions.js";
import { type Asked, type Batches, createBatches } from "../batches.js";
import type { Reading } from "../compare-and-set.js";
import { encodeText } from "../rows.js";
import { LOCKED_FOR_MS, type Place, RowLocked, type Transition, UNSEEN } from "./changes.js";
import { arrayOf, recordOf } from "./codec.js";
import type { PostgresRow } from "./driver.js";
import { batchFaultOf } from "./faults.js";

/** `made`: the record is new and the claim's own. `found`: what stands there instead. */
type Claimed =
  | { readonly kind: "made"; readonly nowMs: number }
  | { readonly kind: "found"; readonly row: PostgresRow; readonly nowMs: number }
  | { readonly kind: "seen"; readonly reading: Reading<string> }
  /** A transaction of the application's has claimed it and not ended. */
  | { readonly kind: "joined" };

/** The server got to it when its time was over, or nearly: nothing was done. */
interface Late {
  readonly kind: "late";
}

export interface Claims {
  claim(request: ClaimRequest): Promise<ClaimOutcome>;
  drained(): Promise<void>;
}

export function createClaims(place: Place): Claims {
  const batches: Batches<ClaimRequest, Claimed> = createBatches(
    {
      keyOf: ({ key }) => key,
      bytesOf: ({ operation, label }) => 300 + operation.length + (label?.length ?? 0),
      // Close to the end the estimate of the server's clock decides, and the next one is better.
      send: async (asked) =>
        (await send(place, asked)).map((sent) => (sent?.kind === "late" ? undefined : sent)),
      alone: (asked) => askAlone(place, asked),
      judge,
      faultOf: batchFaultOf,
    },
    place.settings.timeoutMs,
  );
  return {
    drained: batches.drained,
    async claim(request) {
      const claimed = await batches.submit(request);
      if (claimed.kind === "made") return { kind: "claimed", attempt: 1, takeover: false, compared: true };
      if (claimed.kind === "joined") return inFlightUnseen();
      return decide(place, request, claimed.kind === "seen" ? claimed.reading : readingOf(claimed));
    },
  };
}

async function send(
  place: Place,
  asked: readonly Asked<ClaimRequest>[],
): Promise<readonly (Claimed | Late | undefined)[]> {
  const { statements, clock, run } = place;
  const column = (value: (request: ClaimRequest) => string | number | null): string =>
    arrayOf(asked.map(({ request }) => value(request)));
  const sentAtMs = systemClock.monotonicMs();
  const rows = await run(statements.claim, [
    column(({ key }) => key),
    column(({ scopeId }) => scopeId),
    column(({ operation }) => encodeText(operation)),
    column(({ label }) => (label === undefined ? null : encodeText(label))),
    column(({ token }) => token),
    column(({ fingerprint }) => fingerprint),
    column(({ guarantee }) => guarantee),
    column(({ onLapse }) => onLapse),
    column(({ leaseMs }) => leaseMs),
    column(({ retentionMs }) => retentionMs),
    arrayOf(asked.map(({ endsAtMs }) => clock.at(endsAtMs) ?? null)),
  ]);
  const arrivedAtMs = systemClock.monotonicMs();
  clock.seen(Number(rows[0]?.[2]), sentAtMs, arrivedAtMs);
  const byKey = new Map(rows.map((row) => [row[0], row]));
  return asked.map(({ request }) => claimedOf(byKey.get(request.key)));
}

/** Nothing comes of an entry whose record another transaction made at the same moment. */
function claimedOf(row: PostgresRow | undefined): Claimed | Late | undefined {
  if (row === undefined) return undefined;
  const [, what, nowMs] = row;
  if (what === "made") return { kind: "made", nowMs: Number(nowMs) };
  if (row[FIRST + 1] !== null) return { kind: "found", row, nowMs: Number(nowMs) };
  return what === "late" ? { kind: "late" } : undefined;
}

/** Before it: key, what became of it, and the server's clock. */
const FIRST = 3;

function readingOf({ row, nowMs }: Extract<Claimed, { readonly kind: "found" }>): Reading<string> {
  const stored = recordOf(row.slice(FIRST));
  return { record: stored?.record, revision: stored?.revision, nowMs };
}

/** Its record may have been made at the very moment of the batch: a second look shows it. */
async function askAlone(place: Place, asked: Asked<ClaimRequest>): Promise<Claimed> {
  const { request, endsAtMs } = asked;
  const reading = await place.read(request.key);
  if (reading.record !== undefined) return { kind: "seen", reading };
  if (systemClock.monotonicMs() >= endsAtMs) throw tooLate();
  const [claimed] = await send(place, [asked]);
  if (claimed?.kind === "late") throw tooLate();
  if (claimed !== undefined) return claimed;
  const again = await place.read(request.key);
  if (again.record !== undefined) return { kind: "seen", reading: again };
  if (systemClock.monotonicMs() >= endsAtMs) throw tooLate();
  return { kind: "joined" };
}

function inFlightUnseen(): ClaimOutcome {
  return { kind: "in-flight", holder: UNSEEN, remainingMs: LOCKED_FOR_MS, compared: true };
}

/** A request for a key that another one was sent for: it finds what that one found, or made. */
function judge(request: ClaimRequest, first: ClaimRequest, claimed: Claimed): Claimed {
  const isSame = request.token === first.token && request.fingerprint === first.fingerprint;
  if (claimed.kind !== "made" || isSame) return claimed;
  const { nowMs } = claimed;
  const { record } = claimRecord(undefined, first, nowMs);
  return { kind: "seen", reading: { record, revision: undefined, nowMs } };
}

/** What the core's transition says of what was found; written only if it changes something. */
async function decide(place: Place, request: ClaimRequest, reading: Reading<string>): Promise<ClaimOutcome> {
  const { record, revision, nowMs } = reading;
  const first = claimRecord(record, request, nowMs);
  if (first.record === record) return first.outcome;
  const known = (record === undefined) === (revision === undefined) ? reading : undefined;
  try {
    const transition: Transition<ClaimOutcome> = (stored, now) => claimRecord(stored, request, now);
    return await place.change(request.key, transition, { lock: "FOR UPDATE", first: known });
  } catch (error) {
    if (error instanceof RowLocked) return heldByLock(place, request, error);
    throw error;
  }
}

/** Whoever holds the row is ending the claim at this moment, or has pinned it: it lives. */
async function heldByLock(place: Place, request: ClaimRequest, error: RowLocked): Promise<ClaimOutcome> {
  const { record, nowMs } = await place.read(request.key);
  if (record === undefined) throw error;
  const { outcome, record: after } = claimRecord(record, request, nowMs);
  if (after === record) return outcome;
  // Asked again with its token while it lives: it is the caller's, whether or not its lease can be renewed just now.
  if (record.token === request.token && nowMs < record.leaseEndsAtMs) return outcome;
  if (record.token === request.token) throw error;
  const compared = compareFingerprints(record.fingerprint, request.fingerprint) === "same";
  return { kind: "in-flight", holder: record.token, remainingMs: LOCKED_FOR_MS, compared };
}

function tooLate(): OncekeyError<"STORE_UNAVAILABLE"> {
  const message =
    "The server got to this claim too late, so it was not made. Nothing was changed; try again.";
  return new OncekeyError("STORE_UNAVAILABLE", message, { retryAfterMs: 1_000 });
}
