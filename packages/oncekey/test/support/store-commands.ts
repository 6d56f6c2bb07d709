/**
 * @module
 * Random calls on a store and on the reference model, which have to agree; for fast-check's model runs.
 *
 * Two keys, few tokens and short durations, so that lapses, takeovers and late calls of former holders are the
 * rule. After each call the record is looked at for what has to hold in every state.
 */
import fc from "fast-check";
import { expect } from "vitest";
import type { ClaimToken, RecordVersion } from "../../src/core/record.js";
import type { ClaimOutcome, ClaimRequest, Store } from "../../src/core/store.js";
import { claimRequest, fingerprint, identityOf, newToken } from "../../src/testing/requests.js";
import { outcome } from "../../src/testing/store-contract/scenes.js";
import { type Asking, type ReferenceModel, referenceModel, type Verdict } from "./reference-model.js";

const KEYS = [claimRequest().key, claimRequest().key] as const;
const TOKENS = ["A", "B", "C", "D"] as const;
const LEASE_MS = 20;
const RETENTION_MS = 60;

export interface Modelled {
  readonly keys: readonly ReferenceModel[];
  now: number;
}

interface Real {
  readonly store: Store;
  advance(ms: number): Promise<void>;
}

export function newModel(): Modelled {
  return { keys: KEYS.map(() => referenceModel()), now: 0 };
}

interface Call {
  readonly key: 0 | 1;
  readonly asking: Asking;
  /** Asked again at once, as if the first answer had been lost. */
  readonly times: 1 | 2;
}

type Command = fc.AsyncCommand<Modelled, Real>;

/** A call on the model and the same on the store. */
function command(
  name: string,
  { key, asking, times }: Call,
  expected: (model: ReferenceModel, asking: Asking, now: number) => string,
  answered: (real: Real, request: ClaimRequest, model: ReferenceModel) => Promise<string>,
): Command {
  return {
    check: () => true,
    async run(modelled, real) {
      const model = modelled.keys[key] as ReferenceModel;
      model.at(modelled.now);
      for (let time = 0; time < times; time++) {
        // The store first: what it is asked may depend on what the model knows before the call.
        const answer = await answered(real, requestOf(key, asking), model);
        expect(answer).toBe(expected(model, asking, modelled.now));
        await agrees(real.store, key, model);
      }
    },
    toString: () => `${name}(key ${key}, ${JSON.stringify(asking)}) × ${times}`,
  };
}

function requestOf(key: 0 | 1, { token, asked, holds, ...rest }: Asking): ClaimRequest {
  return claimRequest({
    ...rest,
    key: KEYS[key],
    token: token as ClaimToken,
    fingerprint: fingerprint(asked),
    onLapse: holds ? "hold" : "takeover",
  });
}

/** What has to hold in every state. */
async function agrees(store: Store, key: 0 | 1, model: ReferenceModel): Promise<void> {
  const info = await store.find(KEYS[key]);
  expect(info?.state ?? "absent").toBe(model.phase());
  if (info === undefined) return;
  expect(info.attempt).toBe(model.attempts());
  expect(info.expiresInMs === undefined).toBe(info.state === "unknown");
  const [status] = await store.status([KEYS[key]]);
  if (!info.reconciling) expect(status?.holder).toBe(model.owner());
}

function claimAnswer(answer: ClaimOutcome): string {
  switch (answer.kind) {
    case "claimed":
      return `claimed, attempt ${answer.attempt}, ${answer.takeover ? "takeover" : "first"}`;
    case "in-flight":
      return `in-flight, held by ${answer.holder} for ${answer.remainingMs}`;
    case "completed":
      return `completed by ${answer.completedBy}: ${textOf(answer.outcome.body)}`;
    case "unknown":
      return `unknown, made by ${answer.madeBy}, attempt ${answer.attempt}`;
    case "mismatch":
      return `mismatch, ${answer.state}`;
    case "exhausted":
      return `exhausted after ${answer.attempts}`;
    default:
      return answer.kind;
  }
}

function textOf(body: Uint8Array | undefined): string {
  return new TextDecoder().decode(body);
}

const claim = (call: Call): Command =>
  command(
    "claim",
    call,
    (model, asking, now) => model.claim(asking, now),
    async ({ store }, request) => claimAnswer(await store.claim(request)),
  );

const extend = (call: Call): Command =>
  command(
    "extend",
    call,
    (model, { token, leaseMs }, now) => model.extend(token, leaseMs, now),
    async ({ store }, request) => (await store.extend(request)).kind,
  );

const complete = (call: Call, text: string): Command =>
  command(
    "complete",
    call,
    (model, asking, now) => model.complete(asking, 1, text, now),
    async ({ store }, request) => {
      const answer = await store.complete({ ...identityOf(request), attempt: 1, outcome: outcome(text) });
      if (answer.kind === "completed") return answer.how;
      if (answer.kind === "full" || answer.by === undefined) return answer.kind;
      return `replaced by ${answer.by.token}: ${textOf(answer.by.outcome.body)}`;
    },
  );

const release = (call: Call, started: boolean): Command =>
  command(
    "release",
    call,
    (model, { token, maxAttempts }, now) => model.release(token, started, maxAttempts !== undefined, now),
    async ({ store }, { key, token, maxAttempts }) => {
      const keepAttempts = maxAttempts !== undefined;
      return (await store.release({ key, token, started, keepAttempts, code: "E" })).kind;
    },
  );

const markUnknown = (call: Call): Command =>
  command(
    "markUnknown",
    call,
    (model, asking) => model.markUnknown(asking, 1),
    async ({ store }, request) =>
      (await store.markUnknown({ ...identityOf(request), attempt: 1, code: undefined })).kind,
  );

/** A reconciler of whatever is there, or, if `blind`, of the claim of its own token's name. */
const reconcile = (call: Call, blind: boolean): Command => {
  const madeBy = (model: ReferenceModel, token: string) => (blind ? token : model.owner());
  return command(
    "reconcile",
    call,
    (model, { token, leaseMs }, now) => model.reconcile(madeBy(model, token), `r${token}`, leaseMs, now),
    async ({ store }, { key, token, leaseMs }, model) => {
      const made = madeBy(model, token) as ClaimToken;
      const own = `r${token}` as ClaimToken;
      return (await store.reconcile({ key, madeBy: made, token: own, leaseMs })).kind;
    },
  );
};

/** A verdict on the record as it is, by an operator whose token nobody has seen. */
const resolve = (call: Call, verdict: Verdict, evenIfLive: boolean): Command => {
  const token = newToken();
  const restart = { kind: "restart", leaseMs: LEASE_MS, maxAttempts: undefined } as const;
  const paid = { kind: "completed", outcome: outcome("verdict"), retentionMs: undefined } as const;
  const said = { restart, completed: paid, unknown: { kind: "unknown" } as const };
  const plain = { "not-performed": { kind: "not-performed" }, forgotten: { kind: "forgotten" } } as const;
  return command(
    `resolve as ${verdict}`,
    call,
    (model, _, now) => model.resolve(verdict, token, LEASE_MS, now, evenIfLive),
    async ({ store }, { key }) => {
      const version = (await store.find(key))?.version ?? ("none" as RecordVersion);
      const request = { key, version, token, verdict: { ...said, ...plain }[verdict], evenIfLive };
      return (await store.resolve(request)).kind;
    },
  );
};

const advance = (ms: number): Command => ({
  check: () => true,
  async run(modelled, real) {
    modelled.now += ms;
    for (const model of modelled.keys) model.at(modelled.now);
    await real.advance(ms);
    for (const [index, model] of modelled.keys.entries()) await agrees(real.store, index as 0 | 1, model);
  },
  toString: () => `advance(${ms})`,
});

/** Whatever it removes, nothing that is still there. */
const purge: Command = {
  check: () => true,
  async run(modelled, { store }) {
    await store.purge(10);
    for (const [index, model] of modelled.keys.entries()) await agrees(store, index as 0 | 1, model);
  },
  toString: () => "purge",
};

export function storeCommands() {
  const asking = fc.record({
    token: fc.constantFrom(...TOKENS),
    // Mostly the same request, or everything ends as a mismatch.
    asked: fc.constantFrom("pay 10", "pay 10", "pay 10", "pay 99"),
    holds: fc.boolean(),
    maxAttempts: fc.constantFrom(undefined, undefined, 2, 3),
    leaseMs: fc.constantFrom(LEASE_MS, 2 * LEASE_MS),
    retentionMs: fc.constant(RETENTION_MS),
  });
  const call: fc.Arbitrary<Call> = fc.record({
    key: fc.constantFrom(0, 1),
    asking,
    times: fc.constantFrom(1, 1, 2),
  });
  const verdict = fc.constantFrom<Verdict>("completed", "restart", "unknown", "not-performed", "forgotten");
  return fc.commands(
    [
      call.map(claim),
      call.map(claim),
      call.map(extend),
      fc.tuple(call, fc.constantFrom("one", "two")).map(([one, text]) => complete(one, text)),
      fc.tuple(call, fc.boolean()).map(([one, started]) => release(one, started)),
      call.map(markUnknown),
      fc.tuple(call, fc.boolean()).map(([one, blind]) => reconcile(one, blind)),
      fc.tuple(call, verdict, fc.boolean()).map(([one, what, force]) => resolve(one, what, force)),
      fc.integer({ min: 1, max: RETENTION_MS }).map(advance),
      fc.constant<Command>(purge),
    ],
    { maxCommands: 40, size: "+1" },
  );
}
