/**
 * @module
 * One delivery of a message, from its arrival to its verdict. Every adapter goes through here, and decides nothing itself.
 *
 * Invariants: a delivery always gets a verdict, within a bounded time, and never a rejection; the handler runs at most once for
 * it, under a claim of its key; what the verdict says is true before it is carried out, so that a crash on the way to the
 * broker only brings the message again. What a verdict is left to `verdict.ts`, the broker's side to the adapters.
 *
 * Crash points (the process is gone, the broker delivers again): before the claim, claimed, after the effect, completed and not
 * acknowledged, put back by a copy and not acknowledged, dead-lettered and not acknowledged. Interleavings: the message is
 * delivered elsewhere while it is handled here; its channel closes while it is handled or held; a handler ends after its
 * delivery was given up; the instance closes. Each has a test.
 */
import type { Call, Performed } from "../core/call.js";
import { type ErrorCode, isOncekeyError, OncekeyError } from "../core/errors.js";
import {
  type Fingerprint,
  fingerprintOf,
  fingerprintTag,
  fingerprintValue,
  NO_FINGERPRINT,
} from "../core/fingerprint.js";
import { encodeDone, runFunction, type Settled } from "../core/function-results.js";
import type { Idempotency } from "../core/idempotency.js";
import {
  GLOBAL_SCOPE,
  identify,
  isUnusable,
  KEY_INPUT,
  partsOf,
  type ScopeValue,
  scopeOf,
} from "../core/key.js";
import { COMMIT_REPEATS } from "../core/limits.js";
import { reportRefused } from "../core/outcome.js";
import { saidAtOnce } from "../core/policy.js";
import { dropped } from "../core/promises.js";
import type { Work } from "../core/work.js";
import type { Consumer } from "./options.js";
import { type Circumstances, ranTooLong, type Verdict, verdictOn, verdictOnError } from "./verdict.js";

/** What the broker says of a delivery beside the message itself. */
export interface Arrival {
  /** How often it has delivered the message, this time included. */
  readonly deliveries?: number | undefined;
  /** Fires when the broker has taken the delivery back: ends a wait, and is heard through the signal of the work too. */
  readonly signal?: AbortSignal | undefined;
}

/** Takes a delivery to its verdict. Never rejects. */
export type Deliver<M, R> = (message: M, arrival?: Arrival) => Promise<Verdict<R>>;

export type Handler<M, R> = (message: M, work: Work) => R | Promise<R>;

/** Bytes of a message's body, version 1. */
const BODY_TAG = fingerprintTag("body1");
/** A message without a key leaves a record that nobody will ask for. */
const KEYLESS_RETENTION_MS = 1_000;

/** @param bodyOf finds what `input: "body"` compares by; an adapter without bytes gives none. */
export function createDelivery<M, R>(
  idempotency: Idempotency,
  consumer: Consumer<M, R>,
  handler: Handler<M, R>,
  bodyOf?: (message: M) => string | Uint8Array,
): Deliver<M, R> {
  const delivery: Delivery<M, R> = { idempotency, consumer, handler, bodyOf };
  return async (message, arrival = {}) => {
    const verdict = await decide(delivery, message, arrival);
    tell(delivery, verdict, message);
    return verdict;
  };
}

interface Delivery<M, R> {
  readonly idempotency: Idempotency;
  readonly consumer: Consumer<M, R>;
  readonly handler: Handler<M, R>;
  readonly bodyOf: ((message: M) => string | Uint8Array) | undefined;
}

async function decide<M, R>(delivery: Delivery<M, R>, message: M, arrival: Arrival): Promise<Verdict<R>> {
  const { policy, backoff, result, operation } = delivery.consumer;
  const { emit } = delivery.idempotency.internals;
  const deliveries = Math.max(1, arrival.deliveries ?? 1);
  const circumstances: Circumstances<R> = { policy, backoff, result, deliveries };
  let call: Call<Settled<R>>;
  try {
    call = callOf(delivery, message, arrival);
  } catch (error) {
    if (isOncekeyError(error)) reportRefused(emit, operation, error);
    return verdictOnError(circumstances, error);
  }
  try {
    return await inTime(delivery, circumstances, call);
  } catch (error) {
    return verdictOnError(circumstances, error);
  }
}

/**
 * A handler that never ends would keep its delivery, and one place of the consumer's prefetch, for ever. The lease is renewed
 * for `maxRunMs`; one lease later somebody else may have taken the key over, and this delivery is given up.
 */
async function inTime<M, R>(
  { idempotency: { internals }, consumer }: Delivery<M, R>,
  circumstances: Circumstances<R>,
  call: Call<Settled<R>>,
): Promise<Verdict<R>> {
  const { policy, waitMs = policy.waitMs } = consumer;
  const performed = internals.perform(call);
  if (!(performed instanceof Promise)) return verdictOn(circumstances, performed);
  const mostMs = waitMs + policy.maxRunMs + policy.leaseMs;
  let late: ((verdict: Verdict<R>) => void) | undefined;
  const givenUp = new Promise<Verdict<R>>((resolve) => {
    late = resolve;
  });
  const timer = internals.clock.setTimer(() => late?.(ranTooLong(circumstances, mostMs)), mostMs, false);
  try {
    const ended = performed.then((end: Performed<Settled<R>>) => verdictOn(circumstances, end));
    return await Promise.race([ended, givenUp]);
  } finally {
    timer.cancel();
  }
}

/** @throws OncekeyError saying why the message cannot be told from others: no key, no scope, nothing to compare by. */
function callOf<M, R>(
  { idempotency, consumer, handler, bodyOf }: Delivery<M, R>,
  message: M,
  { signal }: Arrival,
): Call<Settled<R>> {
  const { internals } = idempotency;
  const { operation, policy, result } = consumer;
  const key = keyFor(consumer, message);
  const scope = scopeFor(consumer, message);
  const keyless = key === undefined;
  const parts = key ?? [crypto.randomUUID()];
  return {
    identity: identify(internals.namespace, scope, operation, parts),
    operation,
    label: policy.keyLabels && !keyless ? parts.join(" ") : undefined,
    fingerprint: keyless ? NO_FINGERPRINT : fingerprintFor(consumer, message, bodyOf),
    policy: keyless ? { ...policy, retentionMs: KEYLESS_RETENTION_MS } : policy,
    signal: () => signal,
    // A message is handled once at a time, so nothing has to be followed through promises to notice that it asks for itself.
    carrier: message,
    waitMs: consumer.waitMs,
    commitRepeats: COMMIT_REPEATS,
    run: (begun) =>
      runFunction(
        internals.emit,
        { result },
        policy,
        (own) => handler(message, own),
        seen(begun.work(), signal, keyless),
      ),
    encodeDone: (done) => encodeDone(result, policy.maxResultBytes, done),
  };
}

/** @returns `undefined` for a message without a key that is to be handled all the same. */
function keyFor<M, R>(consumer: Consumer<M, R>, message: M): readonly string[] | undefined {
  let found: unknown;
  try {
    found = saidAtOnce(consumer.key(message));
  } catch (error) {
    throw broken("KEY_INVALID", "The key function of the consumer threw, or is async.", error);
  }
  const parts = partsOf(found);
  if (parts !== undefined) return parts;
  if (isUnusable(found)) throw new OncekeyError("KEY_INVALID", `The key must be ${KEY_INPUT}.`);
  if (consumer.onMissingKey === "run") return undefined;
  throw new OncekeyError("KEY_MISSING", "The message has no key. Give every message its own.");
}

function scopeFor<M, R>({ scope }: Consumer<M, R>, message: M): ScopeValue {
  if (scope === "global") return GLOBAL_SCOPE;
  let found: ScopeValue;
  try {
    found = scopeOf(saidAtOnce(scope(message)));
  } catch (error) {
    const text = "The scope function of the consumer threw, is async, or returned what is no scope.";
    throw broken("SCOPE_FAILED", text, error);
  }
  if (found.kind !== "missing") return found;
  throw new OncekeyError(
    "SCOPE_MISSING",
    "The message does not say whose it is, and its key means nothing without that.",
  );
}

function fingerprintFor<M, R>(
  { input }: Consumer<M, R>,
  message: M,
  bodyOf: Delivery<M, R>["bodyOf"],
): Fingerprint {
  if (input === "off") return NO_FINGERPRINT;
  try {
    if (typeof input === "function") return fingerprintValue(saidAtOnce(input(message)));
    return fingerprintOf(BODY_TAG, bodyOf === undefined ? [] : [bodyOf(message)]);
  } catch (error) {
    if (isOncekeyError(error)) throw error;
    const text = "What the consumer compares by could not be taken from the message.";
    throw broken("INPUT_UNSUPPORTED", text, error);
  }
}

/** A function of the consumer's own could not make anything of the message. */
function broken(code: ErrorCode, text: string, cause: unknown): OncekeyError {
  return new OncekeyError(code, text, { cause });
}

/** The work as its handler sees it: it also hears of what the broker takes back, and that a message without a key has no claim. */
function seen(work: Work, signal: AbortSignal | undefined, keyless: boolean): Work {
  if (signal === undefined && !keyless) return work;
  let both: AbortSignal | undefined;
  const either = () => {
    both ??= signal === undefined ? work.signal : AbortSignal.any([work.signal, signal]);
    return both;
  };
  return Object.create(work, {
    signal: { get: either, enumerable: true },
    protected: { value: work.protected && !keyless, enumerable: true },
  });
}

/** Whoever listens changes nothing. */
function tell<M, R>({ consumer: { onVerdict } }: Delivery<M, R>, verdict: Verdict<R>, message: M): void {
  if (onVerdict === undefined) return;
  try {
    dropped(onVerdict(verdict, message));
  } catch {
    // A listener of the application's: its faults are not those of the message.
  }
}
