/**
 * @module
 * A record in each of its states, at one instant, and the requests that a test of the transitions sends.
 */
import type { ClaimToken, StoredOutcome, StoredRecord } from "../../src/core/record.js";
import { versionOf } from "../../src/core/record.js";
import type { ClaimRequest, CompleteRequest, ReleaseRequest } from "../../src/core/store.js";
import {
  type Change,
  claimRecord,
  completeRecord,
  markUnknownRecord,
  reconcileRecord,
  releaseRecord,
  resolveRecord,
} from "../../src/core/transitions.js";
import { claimRequest, identityOf, newToken } from "../../src/testing/requests.js";

export const LEASE = 1_000;
export const RETENTION = 10_000;
export const NOW = 50_000;

export const T = "T" as ClaimToken;
export const U = "U" as ClaimToken;
export const R = "R" as ClaimToken;

export const request = claimRequest({ token: T, leaseMs: LEASE, retentionMs: RETENTION });
export const asked = (token: ClaimToken, changes: Partial<ClaimRequest> = {}): ClaimRequest => ({
  ...request,
  token,
  ...changes,
});
export const FIRST: StoredOutcome = { head: "first", body: Uint8Array.of(1) };
export const LATER: StoredOutcome = { head: "later", body: Uint8Array.of(2) };
export const completing = (token: ClaimToken, outcome = FIRST, attempt = 1): CompleteRequest => ({
  ...identityOf(asked(token)),
  attempt,
  outcome,
});
export const releasing = (token: ClaimToken, changes: Partial<ReleaseRequest> = {}): ReleaseRequest => ({
  key: request.key,
  token,
  started: true,
  keepAttempts: false,
  code: "E_FAILED",
  ...changes,
});
export const marking = (token: ClaimToken) => ({ ...identityOf(asked(token)), attempt: 1, code: "E_LOST" });

export function after<O>({ record }: Change<O>): StoredRecord {
  if (record === undefined) throw new Error("There is no record");
  return record;
}
export const claimed = (token: ClaimToken, atMs: number, changes: Partial<ClaimRequest> = {}) =>
  after(claimRecord(undefined, asked(token, changes), atMs));
export const HOLD = { guarantee: "at-most-once", onLapse: "hold" } as const;
const JUST_NOW = NOW - 100;
export const LONG_AGO = NOW - LEASE - 500;

export const unknown = after(markUnknownRecord(claimed(T, JUST_NOW, HOLD), marking(T), JUST_NOW));
export const reconciling = after(
  reconcileRecord(unknown, { key: request.key, madeBy: T, token: R, leaseMs: LEASE }, JUST_NOW),
);
export const tombstone: StoredOutcome = { head: "first", body: undefined };

export const RECORDS = {
  absent: undefined,
  "claimed by T, live": claimed(T, JUST_NOW),
  "claimed by T, lapsed": claimed(T, LONG_AGO),
  "claimed by T, lapsed, at-most-once": claimed(T, LONG_AGO, HOLD),
  "claimed by U, live": claimed(U, JUST_NOW),
  "unknown, made by T": unknown,
  "unknown, being reconciled": reconciling,
  "completed by T": after(completeRecord(claimed(T, JUST_NOW), completing(T), JUST_NOW)),
  "completed by U": after(completeRecord(claimed(U, JUST_NOW), completing(U), JUST_NOW)),
  "tombstone of T": after(completeRecord(claimed(T, JUST_NOW), completing(T, tombstone), JUST_NOW)),
  "released by T, attempts kept": after(
    releaseRecord(claimed(T, JUST_NOW), releasing(T, { keepAttempts: true }), JUST_NOW),
  ),
  "taken from T by an operator": after(
    resolveRecord(
      claimed(T, JUST_NOW),
      {
        key: request.key,
        version: versionOf(claimed(T, JUST_NOW)),
        token: newToken(),
        verdict: { kind: "not-performed" },
        evenIfLive: true,
      },
      JUST_NOW,
    ),
  ),
  "expired, not purged": claimed(T, NOW - LEASE - RETENTION),
} as const satisfies Readonly<Record<string, StoredRecord | undefined>>;
