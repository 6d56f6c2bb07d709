/**
 * @module
 * Finds out how an unknown outcome ended, by asking the function that the policy names.
 *
 * Invariants: reconciling is a claim of its own, one at a time over all processes, renewed while it runs. Until
 * its verdict lands the work's own completion still wins. The verdict is applied only if the record is still
 * what it was (both tokens); a throw, a time-out or a crash leaves the outcome unknown.
 */

import { started } from "./awaitable.js";
import type { Engine } from "./engine.js";
import { unreachable } from "./errors.js";
import { downstreamKeyOf } from "./key.js";
import { BEATS_PER_LEASE } from "./lease.js";
import type { Reconcile, Reconciliation, ResolvedPolicy } from "./policy.js";
import type { ClaimToken, RecordInfo, StoredOutcome } from "./record.js";
import type { Alarm } from "./schedule.js";
import type { ClaimRequest, ResolveOutcome, Verdict } from "./store.js";

/** One reconciliation: `claim.token` is the reconciler's, and becomes the work's if it is started again. */
export interface Inquiry {
  readonly claim: Pick<ClaimRequest, "key" | "token" | "operation" | "leaseMs" | "maxAttempts">;
  readonly policy: Pick<ResolvedPolicy, "reconcile" | "reconcileTimeoutMs" | "storeTimeoutMs">;
  readonly madeBy: ClaimToken;
  readonly encodeDone: (result: unknown) => StoredOutcome;
  /** Nobody is there to run the work: `not-done` frees the key instead of starting it again. */
  readonly releaseOnly?: boolean | undefined;
}

/**
 * - `restarted`: nothing had happened, and the caller holds the claim now.
 * - `resolved`: the record says now what the verdict said; claim again to get it.
 * - `changed`: it is not unknown any more; claim again to see.
 * - `unknown`: nobody could say.
 */
export type Finding =
  | {
      readonly kind: "restarted";
      readonly attempt: number;
      /** When the verdict was sent: the lease of the restarted work may count from then. */
      readonly claimedMs: number;
    }
  | { readonly kind: "resolved"; readonly verdict: "done" | "notDone" }
  | { readonly kind: "changed" }
  | { readonly kind: "unknown" }
  | { readonly kind: "exhausted"; readonly attempts: number }
  | { readonly kind: "in-flight"; readonly holder: ClaimToken; readonly remainingMs: number };

export async function reconcile(engine: Engine, inquiry: Inquiry): Promise<Finding> {
  const { policy, claim } = inquiry;
  if (policy.reconcile === undefined) return { kind: "unknown" };
  const begun = await renew(engine, inquiry);
  if (begun.kind === "changed" || begun.kind === "in-flight") return begun;
  const heartbeat = keepRenewing(engine, inquiry);
  const said = await askWithin(engine, inquiry, policy.reconcile, begun.record);
  await heartbeat.end();
  const { operation, key, token } = claim;
  engine.emit({ type: "reconciled", operation, key, verdict: said.word, cause: said.cause });
  const { verdict } = said;
  const { version } = begun.record;
  const sentMs = engine.clock.monotonicMs();
  // A restart that lands after it was given up is a claim that nobody uses.
  const resolve = () =>
    engine.claiming.watchOver(
      claim,
      started(() => engine.store.resolve({ key, token, version, verdict, evenIfLive: false })),
    );
  const resolved = await engine.calls.bounded("resolve", operation, policy.storeTimeoutMs, resolve);
  return findingOf(resolved, verdict, sentMs);
}

function renew(engine: Engine, { claim, madeBy, policy }: Inquiry) {
  const { key, token, operation, leaseMs } = claim;
  const ask = () => engine.store.reconcile({ key, token, madeBy, leaseMs });
  return engine.calls.bounded("reconcile", operation, policy.storeTimeoutMs, ask);
}

interface Heartbeat {
  /** Resolves when no renewal is on its way that could put the reconciler back after its verdict. */
  end(): Promise<void>;
}

function keepRenewing(engine: Engine, inquiry: Inquiry): Heartbeat {
  const everyMs = inquiry.claim.leaseMs / BEATS_PER_LEASE;
  let underWay: Promise<unknown> = Promise.resolve();
  const beat = (): void => {
    // What a renewal finds is found again by the verdict, which is compared with the record.
    underWay = renew(engine, inquiry).catch(() => undefined);
    alarm = engine.beats.after(everyMs, beat);
  };
  let alarm = engine.beats.after(everyMs, beat);
  return {
    async end() {
      alarm.cancel();
      await underWay;
    },
  };
}

interface Said {
  readonly word: Reconciliation["kind"];
  readonly verdict: Verdict;
  readonly cause: unknown;
}

function nobodyKnows(cause: unknown): Said {
  return { word: "unknown", verdict: { kind: "unknown" }, cause };
}

async function askWithin(
  engine: Engine,
  inquiry: Inquiry,
  ask: Reconcile,
  record: RecordInfo,
): Promise<Said> {
  const { reconcileTimeoutMs } = inquiry.policy;
  const shown = { ...record, downstreamKey: (name: string) => downstreamKeyOf(record.key, name) };
  let alarm: Alarm | undefined;
  const late = new Promise<Said>((resolve) => {
    const cause = new Error(`The reconciler did not answer within ${reconcileTimeoutMs} ms`);
    alarm = engine.beats.after(reconcileTimeoutMs, () => resolve(nobodyKnows(cause)));
  });
  const asked = async (): Promise<Said> => {
    const said = checked(await ask(shown));
    return { word: said.kind, verdict: verdictOf(said, inquiry), cause: undefined };
  };
  return Promise.race([asked().catch(nobodyKnows), late]).finally(() => alarm?.cancel());
}

/** Whatever is not one of the three words means that nobody can say. */
function checked(said: Reconciliation): Reconciliation {
  const kind: unknown = (said as { readonly kind?: unknown } | undefined)?.kind;
  if (kind === "done" || kind === "not-done" || kind === "unknown") return said;
  throw new TypeError('onLapsed must return { kind: "done" | "not-done" | "unknown" }');
}

function verdictOf(said: Reconciliation, { claim, encodeDone, releaseOnly }: Inquiry): Verdict {
  switch (said.kind) {
    case "done":
      return { kind: "completed", outcome: encodeDone(said.result), retentionMs: undefined };
    case "not-done":
      if (releaseOnly === true) return { kind: "not-performed" };
      return { kind: "restart", leaseMs: claim.leaseMs, maxAttempts: claim.maxAttempts };
    case "unknown":
      return { kind: "unknown" };
    default:
      return unreachable(said);
  }
}

function findingOf(resolved: ResolveOutcome, verdict: Verdict, claimedMs: number): Finding {
  switch (resolved.kind) {
    case "resolved":
      if (verdict.kind === "restart") return { kind: "restarted", attempt: resolved.attempt, claimedMs };
      if (verdict.kind === "unknown") return { kind: "unknown" };
      return { kind: "resolved", verdict: verdict.kind === "completed" ? "done" : "notDone" };
    case "exhausted":
      return { kind: "exhausted", attempts: resolved.attempts };
    case "absent":
    case "changed":
    case "live":
      return { kind: "changed" };
    default:
      return unreachable(resolved);
  }
}
