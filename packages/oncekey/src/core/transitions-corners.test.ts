/** The corners of the state machine that hide between the rows of its table. */
import { describe, expect, it } from "vitest";
import {
  after,
  asked,
  claimed,
  completing,
  FIRST,
  HOLD,
  LEASE,
  LONG_AGO,
  marking,
  NOW,
  R,
  RECORDS,
  RETENTION,
  reconciling,
  releasing,
  request,
  T,
  U,
  unknown,
} from "../../test/support/record-scenes.js";
import type { ClaimToken, StoredRecord } from "./record.js";
import { versionOf } from "./record.js";
import type { ResolveRequest, Verdict } from "./store.js";
import {
  claimRecord,
  completeRecord,
  currentRecord,
  extendRecord,
  markUnknownRecord,
  reconcileRecord,
  releaseRecord,
  resolveRecord,
  statusOf,
} from "./transitions.js";

describe("a lapse", () => {
  it("happens at the end of the lease, to the millisecond", () => {
    const record = claimed(T, 0);
    expect(claimRecord(record, asked(U), LEASE - 1).outcome.kind).toBe("in-flight");
    expect(claimRecord(record, asked(U), LEASE).outcome.kind).toBe("claimed");
  });

  it("deletes nothing until the retention has passed as well", () => {
    const record = claimed(T, 0);
    expect(currentRecord(record, LEASE + RETENTION - 1)).toBe(record);
    expect(currentRecord(record, LEASE + RETENTION)).toBeUndefined();
  });

  it("becomes unknown if either the record or the caller says hold", () => {
    expect(claimRecord(claimed(T, 0), asked(U, HOLD), LEASE).outcome.kind).toBe("unknown");
    expect(claimRecord(claimed(T, 0, HOLD), asked(U), LEASE).outcome.kind).toBe("unknown");
  });

  it("names the version under which the unknown record is kept", () => {
    const { outcome, record } = claimRecord(claimed(T, 0, HOLD), asked(U), LEASE);
    expect(outcome).toMatchObject({ kind: "unknown", version: versionOf(record as StoredRecord) });
  });
});

describe("a release of what was never started", () => {
  const takenOver = after(claimRecord(claimed(U, LONG_AGO), asked(T), NOW));
  const giveBack = releasing(T, { started: false, code: undefined });

  it("leaves the lapsed claim that was taken over, once", () => {
    const { outcome, record } = releaseRecord(takenOver, giveBack, NOW);
    expect(outcome).toEqual({ kind: "released" });
    expect(record).toMatchObject({ state: "claimed", attempt: 1, leaseEndsAtMs: NOW });
    const second = releaseRecord(record, giveBack, NOW);
    expect(second).toEqual({ outcome: { kind: "not-held" }, record });
    expect(claimRecord(record, asked(R), NOW).outcome).toMatchObject({ attempt: 2, takeover: true });
  });

  it("leaves it unknown, without an end, if it was declared unknown meanwhile", () => {
    const held = after(markUnknownRecord(takenOver, marking(T), NOW));
    const { outcome, record } = releaseRecord(held, giveBack, NOW);
    expect(outcome).toEqual({ kind: "released" });
    expect(record).toMatchObject({ state: "unknown", attempt: 1, expiresAtMs: Number.POSITIVE_INFINITY });
    expect(releaseRecord(record, giveBack, NOW)).toEqual({ outcome: { kind: "not-held" }, record });
  });

  it("gives the attempt back where attempts are counted", () => {
    const failed = after(releaseRecord(claimed(U, NOW), releasing(U, { keepAttempts: true }), NOW));
    const second = after(claimRecord(failed, asked(T), NOW));
    const { record } = releaseRecord(second, { ...giveBack, keepAttempts: true }, NOW);
    expect(record).toMatchObject({ state: "released", attempt: 1, lastCode: "E_FAILED" });
    expect(releaseRecord(claimed(T, NOW), { ...giveBack, keepAttempts: true }, NOW).record).toBeUndefined();
  });
});

describe("attempts", () => {
  it("are limited whichever way the next one would start", () => {
    const released = RECORDS["released by T, attempts kept"];
    const one = { maxAttempts: 1 };
    const exhausted = { kind: "exhausted", attempts: 1, lastCode: "E_FAILED" };
    expect(claimRecord(released, asked(U, one), NOW)).toEqual({ outcome: exhausted, record: released });
    const lapsed = RECORDS["claimed by T, lapsed"];
    expect(claimRecord(lapsed, asked(U, one), NOW).outcome).toMatchObject({ kind: "exhausted", attempts: 1 });
    const verdict = { kind: "restart", leaseMs: LEASE, maxAttempts: 1 } as const;
    expect(resolveRecord(unknown, resolving(unknown, verdict), NOW)).toEqual({
      outcome: { kind: "exhausted", attempts: 1 },
      record: unknown,
    });
  });

  it("stay over a takeover, with the code of the last failure", () => {
    const failed = RECORDS["released by T, attempts kept"];
    const second = after(claimRecord(failed, asked(U), NOW));
    expect(second).toMatchObject({ attempt: 2, lastCode: "E_FAILED" });
    const third = claimRecord(second, asked(R), NOW + LEASE);
    expect(third.outcome).toMatchObject({ attempt: 3, takeover: true });
    expect(third.record).toMatchObject({ lastCode: "E_FAILED" });
  });
});

const resolving = (record: StoredRecord, verdict: Verdict, changes: Partial<ResolveRequest> = {}) => ({
  key: record.key,
  version: versionOf(record),
  token: R,
  verdict,
  evenIfLive: false,
  ...changes,
});

describe("a verdict", () => {
  it("needs the version that was looked at, which a renewal keeps", () => {
    const renewed = after(extendRecord(RECORDS["claimed by T, lapsed"], asked(T, { leaseMs: 1 }), NOW - 10));
    expect(versionOf(renewed)).toBe(versionOf(RECORDS["claimed by T, lapsed"]));
    const stale = { version: versionOf(RECORDS["completed by U"]) };
    const { outcome, record } = resolveRecord(unknown, resolving(unknown, { kind: "forgotten" }, stale), NOW);
    expect(outcome).toMatchObject({ kind: "changed", record: { state: "unknown" } });
    expect(record).toBe(unknown);
  });

  it("leaves a live claim alone unless told otherwise, be it the work's or a reconciler's", () => {
    const live = RECORDS["claimed by T, live"];
    const forgotten = { kind: "forgotten" } as const;
    const isLive = { kind: "live", remainingMs: LEASE - 100 };
    expect(resolveRecord(live, resolving(live, forgotten), NOW)).toEqual({ outcome: isLive, record: live });
    const stranger = resolving(reconciling, forgotten, { token: U });
    expect(resolveRecord(reconciling, stranger, NOW)).toEqual({ outcome: isLive, record: reconciling });
    expect(resolveRecord(reconciling, resolving(reconciling, forgotten), NOW).outcome.kind).toBe("resolved");
    const forced = resolveRecord(live, resolving(live, forgotten, { evenIfLive: true }), NOW);
    expect(forced.outcome).toEqual({ kind: "resolved", attempt: 1 });
    expect(completeRecord(forced.record, completing(T), NOW).outcome).toEqual({
      kind: "replaced",
      by: undefined,
    });
  });

  it("asked again finds itself applied", () => {
    const paid = { kind: "completed", outcome: FIRST, retentionMs: 77 } as const;
    const first = resolveRecord(unknown, resolving(unknown, paid), NOW);
    expect(first.record).toMatchObject({ state: "completed", token: R, expiresAtMs: NOW + 77 });
    const restart = { kind: "restart", leaseMs: 5, maxAttempts: undefined } as const;
    const restarted = resolveRecord(unknown, resolving(unknown, restart), NOW);
    expect(restarted.record).toMatchObject({
      state: "claimed",
      token: R,
      attempt: 2,
      leaseEndsAtMs: NOW + 5,
    });
    for (const [verdict, { outcome, record }] of [
      [paid, first],
      [restart, restarted],
    ] as const) {
      expect(resolveRecord(record, resolving(unknown, verdict), NOW)).toEqual({ outcome, record });
    }
  });

  it("that says unknown holds a lapsed claim, and lets the next reconciler in", () => {
    const lapsed = RECORDS["claimed by T, lapsed"];
    const said = resolveRecord(lapsed, resolving(lapsed, { kind: "unknown" }), NOW);
    expect(said.record).toMatchObject({ state: "unknown", expiresAtMs: Number.POSITIVE_INFINITY });
    const gaveUp = resolveRecord(reconciling, resolving(reconciling, { kind: "unknown" }), NOW);
    expect(gaveUp.record).toMatchObject({ state: "unknown", reconciler: undefined });
  });
});

describe("a reconciler", () => {
  const asks = (token: ClaimToken, madeBy = T) => ({ key: request.key, madeBy, token, leaseMs: LEASE });

  it("is alone until its lease ends, and may renew it", () => {
    expect(reconcileRecord(reconciling, asks(U), NOW).outcome).toMatchObject({
      kind: "in-flight",
      holder: R,
    });
    expect(reconcileRecord(reconciling, asks(R), NOW).record?.reconciler?.leaseEndsAtMs).toBe(NOW + LEASE);
    expect(reconcileRecord(reconciling, asks(U), NOW + LEASE).outcome.kind).toBe("reconciling");
  });

  it("finds only what is unknown by the claim that it knows", () => {
    for (const row of ["absent", "claimed by T, lapsed", "completed by T"] as const) {
      expect(reconcileRecord(RECORDS[row], asks(R), NOW)).toEqual({
        outcome: { kind: "changed" },
        record: RECORDS[row],
      });
    }
    expect(reconcileRecord(unknown, asks(R, U), NOW).outcome).toEqual({ kind: "changed" });
  });

  it("holds the key for whoever looks", () => {
    expect(statusOf(reconciling, NOW)).toEqual({ state: "claimed", holder: R });
    expect(statusOf(reconciling, NOW + LEASE)).toEqual({ state: "unknown", holder: T });
  });
});
