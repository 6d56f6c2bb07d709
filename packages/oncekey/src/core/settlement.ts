/**
 * @module
 * What happens after the effect: the record learns how the work ended.
 *
 * Invariants: a completion that fails never turns the caller's success into an error and never frees the key
 * by itself; it is tried again in the background, with renewals, until it lands, another token stands there,
 * its time ends or the process closes. Meanwhile repeats in this process are answered from it. A release
 * that fails is tried again for one lease, after which the claim lapses anyway.
 */
import { sha256 } from "#platform";
import { type Awaitable, started, whenDone } from "./awaitable.js";
import type { Background, TaskEnd } from "./background.js";
import type { Calls } from "./calls.js";
import { isOncekeyError, OncekeyError, unreachable } from "./errors.js";
import type { EventListener, IdempotencyEvent } from "./events.js";
import { compareFingerprints, type Fingerprint } from "./fingerprint.js";
import type { ResolvedPolicy } from "./policy.js";
import type { ClaimToken, RecordKey, StoredOutcome } from "./record.js";
import type { ClaimRequest, CompleteOutcome, CompleteRequest, Store } from "./store.js";

/** One attempt that holds, or held, a claim. */
export interface Held {
  readonly claim: ClaimRequest;
  readonly attempt: number;
  readonly policy: ResolvedPolicy;
}

/**
 * - `stored`: the record has this result.
 * - `pending`: it does not yet; it is being tried again (or was given up, which an event has said).
 * - `superseded`: another token completed the key first; the record's result counts.
 * - `running-elsewhere`: another token holds the key now.
 */
export type Completion =
  | { readonly kind: "stored" }
  | { readonly kind: "pending" }
  | { readonly kind: "superseded"; readonly by: ClaimToken; readonly outcome: StoredOutcome }
  | { readonly kind: "running-elsewhere" };

export interface Settlement {
  complete(held: Held, outcome: StoredOutcome): Awaitable<Completion>;
  /** `started: false`: the work never began, so the claim does not count as an attempt. */
  release(held: Held, started: boolean, code: string | undefined): Promise<void>;
  markUnknown(held: Held, code: string | undefined): Promise<void>;
  /** The result of a completion that has not landed yet, if it answers `fingerprint`. */
  pending(
    key: RecordKey,
    fingerprint: Fingerprint,
  ): { readonly outcome: StoredOutcome } | "mismatch" | undefined;
}

export interface SettlementDependencies {
  readonly store: Store;
  readonly calls: Calls;
  readonly completions: Background;
  /** Releases, and words that nobody knows how an attempt ended. */
  readonly letGo: Background;
  readonly emit: EventListener;
}

type Lost = Extract<IdempotencyEvent, { readonly type: "completion-lost" }>["reason"];

interface PendingCompletion {
  readonly fingerprint: Fingerprint;
  readonly outcome: StoredOutcome;
}

interface State extends SettlementDependencies {
  readonly pendings: Map<RecordKey, PendingCompletion>;
}

export function createSettlement(dependencies: SettlementDependencies): Settlement {
  const state: State = { ...dependencies, pendings: new Map() };
  return {
    complete: (held, outcome) => complete(state, held, outcome),
    release: (held, started, code) => release(state, held, started, code),
    markUnknown: (held, code) => markUnknown(state, held, code),
    pending(key, fingerprint) {
      const found = state.pendings.get(key);
      if (found === undefined) return undefined;
      return compareFingerprints(found.fingerprint, fingerprint) === "different" ? "mismatch" : found;
    },
  };
}

function complete(state: State, held: Held, outcome: StoredOutcome): Awaitable<Completion> {
  return whenDone(
    started(() => askToComplete(state, held, outcome)),
    (completion) => {
      if (completion.kind === "stored") reportCompleted(state, held, outcome, "stored");
      if (completion.kind === "running-elsewhere") reportLost(state, held, "replaced");
      return completion;
    },
    (error) => completeLater(state, held, outcome, error),
  );
}

function reportCompleted(
  { emit }: State,
  { claim, attempt }: Held,
  { body }: StoredOutcome,
  how: "stored" | "late",
): void {
  const { operation, key, token } = claim;
  emit({ type: "completed", operation, key, token, attempt, how, tombstone: body === undefined });
}

function reportLost({ emit }: State, { claim }: Held, reason: Lost): void {
  const { operation, key, token } = claim;
  emit({ type: "completion-lost", operation, key, token, reason });
}

function askToComplete(state: State, held: Held, outcome: StoredOutcome): Awaitable<Completion> {
  const { store, calls } = state;
  const { claim, attempt, policy } = held;
  const { key, scopeId, operation, label, token, fingerprint, guarantee, onLapse, leaseMs, retentionMs } =
    claim;
  // Member by member: a spread with new members is several times slower (measured).
  const request: CompleteRequest = {
    key,
    scopeId,
    operation,
    label,
    token,
    fingerprint,
    guarantee,
    onLapse,
    leaseMs,
    retentionMs,
    attempt,
    outcome,
  };
  const ask = () => store.complete(request);
  const answer = calls.ask("complete", operation, policy.storeTimeoutMs, ask);
  return whenDone(answer, (completed) => completionOf(state, claim, outcome, completed));
}

function completionOf(
  state: State,
  claim: ClaimRequest,
  outcome: StoredOutcome,
  answer: CompleteOutcome,
): Completion {
  switch (answer.kind) {
    case "completed":
      return { kind: "stored" };
    case "replaced":
      if (answer.by === undefined) return { kind: "running-elsewhere" };
      reportSuperseded(state, claim, answer.by, outcome);
      return { kind: "superseded", by: answer.by.token, outcome: answer.by.outcome };
    case "full":
      throw new OncekeyError("CAPACITY_EXCEEDED", "The store has no room to make a lost record again.");
    default:
      return unreachable(answer);
  }
}

function reportSuperseded(
  { emit }: State,
  { operation, key, token }: ClaimRequest,
  by: { readonly token: ClaimToken; readonly outcome: StoredOutcome },
  outcome: StoredOutcome,
): void {
  const digests = { digest: digestOf(outcome), byDigest: digestOf(by.outcome) };
  emit({ type: "superseded", operation, key, token, by: by.token, ...digests });
}

/** Keeps trying after the caller has its answer; repeats in this process are answered from here meanwhile. */
function completeLater(state: State, held: Held, outcome: StoredOutcome, cause: unknown): Completion {
  const { pendings, completions, emit } = state;
  const { claim, policy } = held;
  const { key, token, operation, fingerprint } = claim;
  const entry: PendingCompletion = { fingerprint, outcome };
  const ended = (end: TaskEnd): void => {
    if (pendings.get(key) === entry) pendings.delete(key);
    if (end !== "landed") reportLost(state, held, end);
  };
  pendings.set(key, entry);
  const attempt = () => tryAgain(state, held, outcome);
  const bytes = outcome.body?.byteLength ?? 0;
  const willRetry = completions.add({ attempt, forMs: policy.completionRetryMs, bytes, ended });
  emit({ type: "completion-failed", operation, key, token, willRetry, cause });
  return { kind: "pending" };
}

async function tryAgain(state: State, held: Held, outcome: StoredOutcome): Promise<boolean> {
  const { store, calls } = state;
  const { key, token, operation, leaseMs } = held.claim;
  try {
    const completion = await askToComplete(state, held, outcome);
    if (completion.kind === "stored") reportCompleted(state, held, outcome, "late");
    // While another token runs, its result is not known yet; when it has completed, that one counts.
    if (completion.kind === "running-elsewhere") reportLost(state, held, "replaced");
    return true;
  } catch (error) {
    if (isFinal(error)) {
      reportLost(state, held, "unreadable");
      return true;
    }
    // The store may answer renewals though it refuses the completion: then nobody else starts meanwhile.
    const renew = () => store.extend({ key, token, leaseMs });
    await calls.bounded("extend", operation, held.policy.storeTimeoutMs, renew).catch(() => undefined);
    return false;
  }
}

async function release(state: State, held: Held, started: boolean, code: string | undefined): Promise<void> {
  const { store, calls, letGo, emit } = state;
  const { claim, attempt, policy } = held;
  const { key, token, operation } = claim;
  const request = { key, token, started, code, keepAttempts: policy.maxAttempts !== undefined };
  const ask = () => calls.bounded("release", operation, policy.storeTimeoutMs, () => store.release(request));
  if (started) emit({ type: "released", operation, key, token, attempt, code });
  await persist(letGo, ask, policy.leaseMs);
}

async function markUnknown(state: State, held: Held, code: string | undefined): Promise<void> {
  const { store, calls, letGo, emit } = state;
  const { claim, attempt, policy } = held;
  const request = { ...claim, attempt, code };
  const { operation, key, token } = claim;
  const ask = () =>
    calls.bounded("markUnknown", operation, policy.storeTimeoutMs, () => store.markUnknown(request));
  emit({ type: "outcome-unknown", operation, key, token, attempt, code });
  await persist(letGo, ask, policy.leaseMs);
}

/** Asks now and, if that fails, in the background for as long as it can matter. */
async function persist(background: Background, ask: () => Promise<unknown>, forMs: number): Promise<void> {
  const attempt = () => ask().then(() => true, isFinal);
  if (await attempt()) return;
  background.add({ attempt, forMs, bytes: 0, ended: () => undefined });
}

/** A record that cannot be read will not become readable by asking again. */
function isFinal(error: unknown): boolean {
  return isOncekeyError(error, "RECORD_UNREADABLE");
}

function digestOf({ head, body }: StoredOutcome): string {
  return body === undefined ? sha256(head) : sha256(`${head.length}:${head}${sha256(body)}`);
}
