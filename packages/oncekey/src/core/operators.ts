/**
 * @module
 * What people do to records by hand: look, release, forget, say what happened.
 *
 * Invariants: every change is compared with what was looked at, and a live claim is refused unless that is
 * asked for in so many words; its holder is then told and cannot make the record again. Each change leaves an
 * event with who did it and why. If the store does not answer, nothing is claimed about the result.
 */
import type { Call } from "./call.js";
import type { Engine } from "./engine.js";
import { isOncekeyError, OncekeyError, unreachable } from "./errors.js";
import type { StoreCall } from "./events.js";
import {
  identify,
  MISSING_SCOPE,
  partsOf,
  type ScopeValue,
  scopeId,
  scopeValueOf,
  stepKeyOf,
} from "./key.js";
import { MAX_PAGE } from "./limits.js";
import {
  type ListOptions,
  listProblems,
  noteProblems,
  type OperatorNote,
  type OperatorVerdict,
  type RecordTarget,
  refuse,
  targetProblems,
  verdictProblems,
} from "./operator-input.js";
import type { ResolvedPolicy } from "./policy.js";
import { reconcile } from "./reconciling.js";
import type { RecordInfo, RecordKey, StoredOutcome } from "./record.js";
import type { RecordPage, Verdict } from "./store.js";

/** `absent`: there is no record, so nothing had to be changed. */
export type OperatorOutcome =
  | {
      readonly kind: "applied";
      /** What was forgotten can be replayed until then by processes that keep copies, and its key is refused as in flight; usually 0. */
      readonly effectiveAfterMs: number;
    }
  | { readonly kind: "absent" };

/** How many unknown outcomes a sweep met, by what was said of them. */
export interface ReconcileReport {
  readonly done: number;
  readonly notDone: number;
  readonly unknown: number;
  /** Not asked: no `onLapsed` is known here for the operation, somebody asks already, or its holder may only be slow. */
  readonly skipped: number;
}

/** What is known of an operation that has been called in this process. */
export interface KnownOperation {
  readonly policy: ResolvedPolicy;
  readonly encodeDone: (result: unknown) => StoredOutcome;
}

export interface Desk {
  readonly engine: Engine;
  readonly namespace: string;
  readonly defaultScope: (() => ScopeValue) | undefined;
  readonly fallback: KnownOperation;
  readonly operations: Map<string, KnownOperation>;
}

const MAX_OPERATIONS = 10_000;

/** Remembers how results of an operation are stored, for whoever resolves one of its records. */
export function noteOperation(desk: Desk, { operation, policy, encodeDone }: Call<unknown>): void {
  if (desk.operations.has(operation) || desk.operations.size >= MAX_OPERATIONS) return;
  desk.operations.set(operation, { policy, encodeDone });
}

/** @throws OncekeyError for a target that can name no record: "there is none" would be the wrong answer. */
function keyOf(desk: Desk, target: RecordTarget): RecordKey {
  refuse("Record target", targetProblems(target, desk.defaultScope !== undefined));
  const steps = [target.step ?? []].flat();
  return steps.reduce<RecordKey>((key, name) => stepKeyOf(key, name), operationKeyOf(desk, target));
}

function operationKeyOf(desk: Desk, target: RecordTarget): RecordKey {
  if ("recordKey" in target) return target.recordKey;
  const scope = "scope" in target ? scopeValueOf(target.scope) : defaultScopeOf(desk);
  const named = { operation: target.operation, key: target.key, scope };
  refuse("Record target", targetProblems(named, false));
  return identify(desk.namespace, scope, target.operation, partsOf(target.key) ?? []).key;
}

function defaultScopeOf({ defaultScope }: Desk): ScopeValue {
  try {
    return defaultScope?.() ?? MISSING_SCOPE;
  } catch (cause) {
    // biome-ignore lint/style/useErrorCause: OncekeyError takes it among its details.
    throw new OncekeyError("SCOPE_FAILED", "The scope function of the instance threw.", { cause });
  }
}

/** One call of the store on behalf of an operator. */
function ask<T>({ engine, fallback }: Desk, name: StoreCall, call: () => Promise<T>): Promise<T> {
  return engine.calls.bounded(name, "operator", fallback.policy.storeTimeoutMs, call);
}

export async function find(desk: Desk, target: RecordTarget): Promise<RecordInfo | undefined> {
  const key = keyOf(desk, target);
  return ask(desk, "find", () => desk.engine.store.find(key));
}

export async function list(desk: Desk, options: ListOptions): Promise<RecordPage> {
  refuse("List", listProblems(options));
  const { limit = 100, scope, ...filter } = options;
  const scoped = scope === undefined ? undefined : scopeId(desk.namespace, scopeValueOf(scope));
  const withinMs = desk.fallback.policy.storeTimeoutMs / 2;
  return ask(desk, "list", () => desk.engine.store.list({ ...filter, limit, withinMs, scopeId: scoped }));
}

/** Says that the work was not done: the key is free, with all its attempts. */
export function release(desk: Desk, target: RecordTarget, note: OperatorNote): Promise<OperatorOutcome> {
  return apply(desk, target, note, "release", () => ({ kind: "not-performed" }));
}

/** Removes the record, whatever its state: the next caller starts anew. */
export function forget(desk: Desk, target: RecordTarget, note: OperatorNote): Promise<OperatorOutcome> {
  const { replaysForMs } = desk.engine.store;
  return apply(desk, target, note, "forget", ({ state }) => ({
    kind: "forgotten",
    refuseForMs: state === "completed" ? replaysForMs : undefined,
  }));
}

/** Says what became of an operation whose outcome is unknown (or, `evenIfLive`, of any that has not ended). */
export async function resolve(
  desk: Desk,
  target: RecordTarget,
  said: OperatorVerdict,
  note: OperatorNote,
): Promise<OperatorOutcome> {
  refuse("Verdict", verdictProblems(said));
  return apply(desk, target, note, "resolve", (record) => {
    if (said.kind === "not-done") return { kind: "not-performed" };
    const known = desk.operations.get(record.operation) ?? desk.fallback;
    return { kind: "completed", outcome: known.encodeDone(said.result), retentionMs: undefined };
  });
}

async function apply(
  desk: Desk,
  target: RecordTarget,
  note: OperatorNote,
  action: "release" | "forget" | "resolve",
  verdictOn: (record: RecordInfo) => Verdict,
): Promise<OperatorOutcome> {
  refuse("Operator note", noteProblems(note));
  const { engine } = desk;
  const record = await findToChange(desk, target, note, action);
  if (record === "discarded") return { kind: "applied", effectiveAfterMs: 0 };
  if (record === undefined) return { kind: "absent" };
  if (record.state === "completed" && action !== "forget") {
    throw new OncekeyError(
      "RECORD_CHANGED",
      "The operation is completed; what is done cannot be released or resolved.",
      { completed: true },
    );
  }
  const { key, operation } = record;
  const version = note.version ?? record.version;
  const verdict = verdictOn(record);
  const request = {
    key,
    version,
    token: engine.mint(),
    verdict,
    evenIfLive: note.evenIfLive ?? false,
  };
  const resolved = await ask(desk, "resolve", () => engine.store.resolve(request));
  switch (resolved.kind) {
    case "resolved":
      engine.emit({ type: "operator", operation, key, action, by: note.by, reason: note.reason });
      return {
        kind: "applied",
        effectiveAfterMs: verdict.kind === "forgotten" ? (verdict.refuseForMs ?? 0) : 0,
      };
    case "absent":
      return { kind: "absent" };
    case "live":
      throw new OncekeyError(
        "CLAIM_LIVE",
        "The work may still be running. Wait for its lease, or say evenIfLive.",
        { retryAfterMs: resolved.remainingMs },
      );
    case "changed":
    case "exhausted":
      throw new OncekeyError("RECORD_CHANGED", "The record has changed since it was looked at. Look again.");
    default:
      return unreachable(resolved);
  }
}

/**
 * What cannot be read can still be forgotten. Nobody can tell whether its work runs, so that has to be accepted in as many
 * words as for a live claim.
 */
async function findToChange(
  desk: Desk,
  target: RecordTarget,
  { by, reason, evenIfLive }: OperatorNote,
  action: "release" | "forget" | "resolve",
): Promise<RecordInfo | "discarded" | undefined> {
  const { engine } = desk;
  try {
    return await find(desk, target);
  } catch (error) {
    const discard = engine.store.discard?.bind(engine.store);
    if (!isOncekeyError(error, "RECORD_UNREADABLE") || action !== "forget" || discard === undefined)
      throw error;
    const key = keyOf(desk, target);
    if (evenIfLive !== true) {
      // biome-ignore lint/style/useErrorCause: OncekeyError takes it among its details.
      throw new OncekeyError(
        "CLAIM_LIVE",
        "The record cannot be read, so nobody can tell whether its work is running. To remove it all the same, say evenIfLive.",
        { cause: error },
      );
    }
    await ask(desk, "discard", () => discard(key));
    engine.emit({ type: "operator", operation: "unreadable", key, action, by, reason });
    return "discarded";
  }
}

/** Asks about every unknown outcome whose operation has a reconciler, one after the other. */
export async function reconcileUnknown(desk: Desk): Promise<ReconcileReport> {
  const report = { done: 0, notDone: 0, unknown: 0, skipped: 0 };
  // In this order: what has lapsed becomes unknown when it is met, and must not be met twice.
  for (const state of ["unknown", "lapsed"] as const) {
    let cursor: string | undefined;
    do {
      const page = await list(desk, { state, limit: MAX_PAGE, cursor });
      for (const record of page.records) await reconcileOne(desk, record, report);
      cursor = page.cursor;
    } while (cursor !== undefined && !desk.engine.closing);
  }
  return report;
}

async function reconcileOne(
  desk: Desk,
  record: RecordInfo,
  report: Record<keyof ReconcileReport, number>,
): Promise<void> {
  const { engine } = desk;
  const { policy, encodeDone } = desk.operations.get(record.operation) ?? desk.fallback;
  const askable = -record.leaseRemainingMs >= policy.leaseMs;
  if (record.state !== "unknown" && record.onLapse === "takeover") return;
  if (policy.reconcile === undefined || record.reconciling || !askable) {
    report.skipped += 1;
    return;
  }
  const { key, operation, holder: madeBy, version } = record;
  if (record.lapsed) {
    // Nobody has met it since it lapsed: it has to be unknown before it can be asked about.
    const verdict: Verdict = { kind: "unknown" };
    await ask(desk, "resolve", () =>
      engine.store.resolve({ key, version, token: engine.mint(), verdict, evenIfLive: false }),
    );
  }
  const claim = { key, token: engine.mint(), operation, leaseMs: policy.leaseMs, maxAttempts: undefined };
  const found = await reconcile(engine, { claim, policy, encodeDone, madeBy, releaseOnly: true });
  if (found.kind === "unknown") report.unknown += 1;
  else if (found.kind === "in-flight") report.skipped += 1;
  else if (found.kind === "resolved") report[found.verdict] += 1;
}
