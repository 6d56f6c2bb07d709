/**
 * @module
 * Replays without the network: a store in front of another, which answers for completed records that this process has seen.
 *
 * A completed record never changes: it ends with its retention, or an operator forgets it. So a copy of it can be wrong in two
 * ways only, and both are bounded here: a copy lives for `replayForMs` at most and never past the retention that was left, both
 * counted from before it was read; and what is forgotten leaves a bar in the store that refuses its key for as long as a copy
 * can live in any process. All else (claims, renewals, completions, verdicts) is the store's.
 *
 * Invariants: only what the store has said is completed is held; the fingerprint is compared as the store does; nothing that may
 * not have been committed is held. Each of these has a test: the read was slow, so the copy lives shorter; the record expires;
 * another process forgets it; the completion was refused, or its answer was lost; another request has the same key.
 */
import { compareFingerprints } from "../../core/fingerprint.js";
import type { RecordKey } from "../../core/record.js";
import type {
  ClaimOutcome,
  ClaimRequest,
  CompleteRequest,
  Store,
  TransactionRequest,
  TransactionSession,
} from "../../core/store.js";
import { copyOf, createHeld, type Held, resultBytes } from "./held.js";
import { type ReplayTierOptions, type Settings, settingsOf } from "./options.js";
import { createShared, type Shared, type SharedRecord } from "./shared.js";

interface Tier {
  readonly settings: Settings;
  readonly held: Held;
  readonly shared: Shared | undefined;
  /** Keys whose remaining retention is being asked for. */
  readonly asking: Set<RecordKey>;
}

/** Beyond it a record is not held this time; the next replay asks again. */
const MAX_ASKING = 8;
/** For answers that are under way when a copy ends, and for clocks that do not run evenly. */
const MARGIN_MS = 1_000;

/**
 * Puts a tier of replays before `store`. The result is a store; it closes the one behind it.
 *
 * All processes of one service, and whoever forgets records for them, use the same `replayForMs`.
 *
 * @example const store = replayTier(postgresStore(fromPg(pool)));
 * @throws OncekeyError `CONFIGURATION_INVALID` with every problem of the options.
 */
export function replayTier<Tx, Held = never>(
  store: Store<Tx, Held>,
  options: ReplayTierOptions = {},
): Store<Tx, Held> {
  const settings = settingsOf(store, options);
  const { shared, clock, sharedTimeoutMs, replayForMs } = settings;
  const tier: Tier = {
    settings,
    held: createHeld(settings),
    shared: shared === undefined ? undefined : createShared(shared, clock, sharedTimeoutMs),
    asking: new Set(),
  };
  const { notices, discard, watch, begin, join, pin, warnings } = store;
  return {
    name: store.name,
    // Of a store on a server they are known only once it has been asked.
    get traits() {
      return store.traits;
    },
    replaysForMs: replayForMs + MARGIN_MS,
    ...(warnings && { warnings }),
    ...(notices && { notices: notices.bind(store) }),
    claim: (request) => claim(tier, store, request),
    extend: (request) => store.extend(request),
    complete: (request) => complete(tier, store, request),
    release: (request) => store.release(request),
    markUnknown: (request) => store.markUnknown(request),
    reconcile: (request) => store.reconcile(request),
    async resolve(request) {
      const outcome = await store.resolve(request);
      // Afterwards, or a replay in between would bring it back.
      tier.held.remove(request.key);
      await tier.shared?.remove(request.key);
      return outcome;
    },
    status: (keys) => store.status(keys),
    find: (key) => store.find(key),
    list: (request) => store.list(request),
    purge: (limit) => store.purge(limit),
    ...(discard && {
      async discard(key) {
        await discard.call(store, key);
        tier.held.remove(key);
        await tier.shared?.remove(key);
      },
    }),
    ...(watch && { watch: watch.bind(store) }),
    ...(begin && { begin: (request) => holding(tier, begin.call(store, request), request) }),
    ...(join && { join: join.bind(store) }),
    ...(pin && { pin: pin.bind(store) }),
    close() {
      tier.held.clear();
      return store.close();
    },
  };
}

async function claim<Tx, Joinable>(
  tier: Tier,
  store: Store<Tx, Joinable>,
  request: ClaimRequest,
): Promise<ClaimOutcome> {
  const { held, shared, settings } = tier;
  const near = held.get(request.key, settings.clock.monotonicMs());
  if (near !== undefined) return answerOf(near, request);
  const far = await shared?.get(request.key);
  if (far !== undefined) return answerOf(far, request);
  const answer = await store.claim(request);
  if (answer.kind === "completed") {
    void holdReplayed(tier, store, request.key, { ...answer, outcome: copyOf(answer.outcome) });
  }
  return answer;
}

/** What the store would answer. */
function answerOf({ fingerprint, completedBy, outcome }: SharedRecord, request: ClaimRequest): ClaimOutcome {
  const comparison = compareFingerprints(fingerprint, request.fingerprint);
  if (comparison === "different") return { kind: "mismatch", state: "completed" };
  return { kind: "completed", outcome: copyOf(outcome), completedBy, compared: comparison === "same" };
}

async function complete<Tx, Joinable>(tier: Tier, store: Store<Tx, Joinable>, request: CompleteRequest) {
  const sentMs = tier.settings.clock.monotonicMs();
  const answer = await store.complete(request);
  // "already": the first result stays, which need not be this one.
  if (answer.kind === "completed" && answer.how !== "already")
    hold(tier, request, sentMs, request.retentionMs);
  return answer;
}

/** A transaction whose completion is held once its commit is known. */
function holding<Tx>(
  tier: Tier,
  session: TransactionSession<Tx>,
  request: TransactionRequest,
): TransactionSession<Tx> {
  return {
    handle: session.handle,
    used: () => session.used(),
    undoneBy: () => session.undoneBy?.(),
    rollback: () => session.rollback(),
    async commit(outcome, what) {
      const sentMs = tier.settings.clock.monotonicMs();
      const committed = await session.commit(outcome, what);
      if (committed.kind === "committed") hold(tier, { ...request, outcome }, sentMs, request.retentionMs);
      return committed;
    },
  };
}

/** Holds what this process has completed itself. */
function hold(
  tier: Tier,
  { key, token, fingerprint, outcome }: Pick<CompleteRequest, "key" | "token" | "fingerprint" | "outcome">,
  sinceMs: number,
  remainingMs: number,
): void {
  holdRecord(tier, key, { fingerprint, completedBy: token, outcome }, sinceMs, remainingMs);
}

function holdRecord(
  { held, shared, settings }: Tier,
  key: RecordKey,
  record: SharedRecord,
  sinceMs: number,
  remainingMs: number,
): void {
  const forMs = Math.min(settings.replayForMs, remainingMs);
  held.put(key, { ...record, endsAtMs: sinceMs + forMs });
  const leftMs = sinceMs + forMs - settings.clock.monotonicMs();
  if (shared !== undefined && resultBytes(record) <= settings.maxRecordBytes) shared.put(key, record, leftMs);
}

/** A claim does not say how long the record is kept: that is asked for beside it, once, and nobody waits for it. */
async function holdReplayed<Tx, Joinable>(
  tier: Tier,
  store: Store<Tx, Joinable>,
  key: RecordKey,
  { completedBy, outcome }: Extract<ClaimOutcome, { readonly kind: "completed" }>,
): Promise<void> {
  const { asking, settings } = tier;
  if (asking.has(key) || asking.size >= MAX_ASKING) return;
  asking.add(key);
  const sinceMs = settings.clock.monotonicMs();
  try {
    const found = await store.find(key);
    // The same completion, which never changes.
    if (found?.state !== "completed" || found.holder !== completedBy) return;
    const { fingerprint, expiresInMs = 0 } = found;
    holdRecord(tier, key, { fingerprint, completedBy, outcome }, sinceMs, expiresInMs);
  } catch {
    // The store cannot be asked now: it will be at the next replay.
  } finally {
    asking.delete(key);
  }
}
