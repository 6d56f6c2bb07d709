/**
 * @module
 * The calls of the port that change a record: each one transition of the core, applied to what is kept.
 *
 * Invariant: a call is over when it returns, so nothing comes between its reading and its writing.
 */
import { OncekeyError } from "../../core/errors.js";
import type { RecordKey, StoredOutcome, StoredRecord } from "../../core/record.js";
import type {
  ClaimOutcome,
  ClaimRequest,
  CompleteOutcome,
  CompleteRequest,
  ExtendOutcome,
  ExtendRequest,
  MarkUnknownOutcome,
  MarkUnknownRequest,
  ReconcileOutcome,
  ReconcileRequest,
  ReleaseOutcome,
  ReleaseRequest,
  ResolveOutcome,
  ResolveRequest,
} from "../../core/store.js";
import {
  type Change,
  claimRecord,
  completeRecord,
  extendRecord,
  markUnknownRecord,
  reconcileRecord,
  releaseRecord,
  resolveRecord,
} from "../../core/transitions.js";
import { type Bodies, handedOut } from "./bodies.js";
import type { Settings } from "./options.js";
import { purgeExpired, type Records, recordOf, setRecord } from "./records.js";
import { fullFor, letBodiesGo } from "./room.js";

/** Expired records that each claim removes, so that they go faster than they come even without a timer. */
const PURGE_PER_CLAIM = 4;

export interface RecordCalls {
  claim(request: ClaimRequest): ClaimOutcome;
  extend(request: ExtendRequest): ExtendOutcome;
  complete(request: CompleteRequest): CompleteOutcome;
  release(request: ReleaseRequest): ReleaseOutcome;
  markUnknown(request: MarkUnknownRequest): MarkUnknownOutcome;
  reconcile(request: ReconcileRequest): ReconcileOutcome;
  resolve(request: ResolveRequest): ResolveOutcome;
}

export interface CallPlace {
  readonly records: Records;
  readonly settings: Settings;
  readonly bodies: Bodies;
  readonly nowMs: () => number;
  /** A record now expires at this time. */
  readonly planned: (expiresAtMs: number) => void;
  /** Somebody else has the key now, or nobody, or its end is known, or unknown. */
  readonly changed: (key: RecordKey) => void;
}

export function createCalls(place: CallPlace): RecordCalls {
  const { records, nowMs } = place;
  return {
    claim(request) {
      const now = nowMs();
      purgeExpired(records, now, PURGE_PER_CLAIM);
      const outcome = apply(place, claimRecord, request, now, refused);
      return outcome.kind === "completed" ? { ...outcome, outcome: handedOut(outcome.outcome) } : outcome;
    },
    extend: (request) => apply(place, extendRecord, request, nowMs()),
    complete(request) {
      const outcome = apply(place, completeRecord, request, nowMs(), noRoom);
      if (outcome.kind !== "replaced" || outcome.by === undefined) return outcome;
      return { ...outcome, by: { ...outcome.by, outcome: handedOut(outcome.by.outcome) } };
    },
    release: (request) => apply(place, releaseRecord, request, nowMs()),
    markUnknown: (request) => apply(place, markUnknownRecord, request, nowMs(), noRoomForUnknown),
    reconcile: (request) => apply(place, reconcileRecord, request, nowMs()),
    resolve: (request) => apply(place, resolveRecord, request, nowMs()),
  };
}

type Transition<R, O> = (record: StoredRecord | undefined, request: R, nowMs: number) => Change<O>;
type Full = "records" | "scope";

/** Applies a transition. If it would make a record for which there is no room, `whenFull` answers instead. */
function apply<R extends { readonly key: RecordKey }, O>(
  { records, settings, bodies, planned, changed }: CallPlace,
  transition: Transition<R, O>,
  request: R,
  nowMs: number,
  whenFull?: (limit: Full) => O,
): O {
  const before = recordOf(records, request.key);
  const { outcome, record } = transition(before, request, nowMs);
  if (record === before) return outcome;
  if (before === undefined && record !== undefined && whenFull !== undefined) {
    const limit = fullFor(records, settings, record.scopeId, nowMs);
    if (limit !== undefined) return whenFull(limit);
  }
  // Only `complete` and a verdict bring an outcome; every other transition passes on the one that is kept.
  if (record?.outcome !== undefined && record.outcome !== before?.outcome) {
    // The record was made a moment ago and nobody else has it: this spares a copy of all its members.
    const own: { outcome: StoredOutcome | undefined } = record;
    own.outcome = bodies.keep(record.outcome, record.retentionMs);
  }
  setRecord(records, request.key, record, nowMs);
  if (records.bytes > settings.maxBytes) letBodiesGo(records, settings.maxBytes, nowMs);
  if (record !== undefined) planned(record.expiresAtMs);
  if (record?.state !== before?.state || record?.token !== before?.token) changed(request.key);
  return outcome;
}

function refused(limit: Full): ClaimOutcome {
  return { kind: "full", limit };
}

function noRoom(): CompleteOutcome {
  return { kind: "full" };
}

function noRoomForUnknown(): never {
  throw new OncekeyError(
    "CAPACITY_EXCEEDED",
    "The memory store is full and the record of this claim is gone, so that its unknown outcome could not be kept. Raise maxRecords",
  );
}
