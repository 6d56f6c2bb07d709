/**
 * @module
 * The calls of the port that change a record.
 *
 * Invariants: what every request does is one statement, sent together with those of the same turn; whatever that statement
 * leaves open is decided by a transition of the core. A record that somebody has pinned is a live claim to everybody else.
 */
import type { RecordKey, StoredRecord } from "../../core/record.js";
import type { ExtendOutcome, ExtendRequest, ResolveOutcome, ResolveRequest } from "../../core/store.js";
import {
  type Change,
  completeRecord,
  extendRecord,
  markUnknownRecord,
  reconcileRecord,
  releaseRecord,
  resolveRecord,
} from "../../core/transitions.js";
import { createBatches } from "../batches.js";
import { changeRemotely } from "../compare-and-set.js";
import type { RemoteStore } from "../remote-store.js";
import { completeBatches, extendBatches, releaseBatches } from "./changes.js";
import { claimBatches, claimOutcome } from "./claims.js";
import type { Database } from "./database.js";
import { faultOf } from "./driver.js";
import type { Records } from "./records.js";

type RecordCalls = Pick<
  RemoteStore,
  "claim" | "extend" | "complete" | "release" | "markUnknown" | "reconcile" | "resolve"
>;

export interface CallsPlace {
  readonly database: Database;
  readonly records: Records;
  readonly timeoutMs: number;
  /** Told that nobody holds the key as before: it is completed, free or unknown. */
  readonly ended: (key: RecordKey) => void;
}

/** An operator would rather hear that a claim is live than wait for whoever has its row. */
const OPERATOR_PATIENCE_MS = 300;

type Transition<Outcome> = (record: StoredRecord | undefined, nowMs: number) => Change<Outcome>;

export function createCalls({ database, records, timeoutMs, ended }: CallsPlace) {
  const claims = createBatches(claimBatches(database), timeoutMs);
  const completions = createBatches(completeBatches(database), timeoutMs);
  const extensions = createBatches(extendBatches(database), timeoutMs);
  const releases = createBatches(releaseBatches(database), timeoutMs);

  /** Read, decided here, written back. */
  async function change<Outcome>(
    key: RecordKey,
    transition: Transition<Outcome>,
    patienceMs = timeoutMs,
  ): Promise<Outcome> {
    const { outcome, record, written } = await changeRemotely(records.patient(patienceMs), key, transition);
    if (written && record?.state !== "claimed") ended(key);
    return outcome;
  }

  async function extend(request: ExtendRequest): Promise<ExtendOutcome> {
    if (await extensions.submit(request)) return { kind: "extended" };
    return change(request.key, (stored, nowMs) => extendRecord(stored, request, nowMs));
  }

  async function resolve(request: ResolveRequest): Promise<ResolveOutcome> {
    try {
      const transition: Transition<ResolveOutcome> = (stored, nowMs) => resolveRecord(stored, request, nowMs);
      return await change(request.key, transition, OPERATOR_PATIENCE_MS);
    } catch (error) {
      if (faultOf(error) !== "held") throw error;
      const { record, nowMs } = await records.patient(0).read(request.key);
      if (record === undefined) return { kind: "absent" };
      return { kind: "live", remainingMs: Math.max(0, record.leaseEndsAtMs - nowMs) };
    }
  }

  const calls: RecordCalls = {
    claim: async (request) => claimOutcome(records, request, await claims.submit(request)),
    extend,
    async complete(request) {
      if (await completions.submit(request)) {
        ended(request.key);
        return { kind: "completed", how: "stored" };
      }
      return change(request.key, (stored, nowMs) => completeRecord(stored, request, nowMs));
    },
    async release(request) {
      if (await releases.submit(request)) {
        ended(request.key);
        return { kind: "released" };
      }
      return change(request.key, (stored, nowMs) => releaseRecord(stored, request, nowMs));
    },
    markUnknown: (request) =>
      change(request.key, (stored, nowMs) => markUnknownRecord(stored, request, nowMs)),
    reconcile: (request) => change(request.key, (stored, nowMs) => reconcileRecord(stored, request, nowMs)),
    resolve,
  };
  return {
    ...calls,
    async drained(): Promise<void> {
      await Promise.all([claims, completions, extensions, releases].map((batches) => batches.drained()));
    },
  };
}
