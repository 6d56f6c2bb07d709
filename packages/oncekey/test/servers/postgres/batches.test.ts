/**
 * Claims and endings of concurrent requests share statements. Nobody may notice: not by what is answered, not by what is wrong with
 * a neighbour, not by a neighbour's row that somebody has locked.
 */
import { randomBytes } from "node:crypto";
import fc from "fast-check";
import { fromPg } from "oncekey/stores/postgres";
import { describe, expect, it } from "vitest";
import type { ClaimToken, RecordKey, StoredRecord } from "../../../src/core/record.js";
import type { ClaimRequest } from "../../../src/core/store.js";
import {
  type Change,
  claimRecord,
  completeRecord,
  extendRecord,
  releaseRecord,
} from "../../../src/core/transitions.js";
import { claimRequest, fingerprint, identityOf, newKey } from "../../../src/testing/requests.js";
import { completion, releaseOf } from "../../../src/testing/store-contract/scenes.js";
import { postgresUrl } from "../support/servers.js";
import { openPool, openStore, watched } from "./fixture.js";

const url = await postgresUrl();

describe("concurrent calls", () => {
  it("share one statement of each kind", async () => {
    const sent: (string | undefined)[] = [];
    const { store } = await openStore(watched(fromPg(openPool(url)), (name) => sent.push(name)));
    const requests = Array.from({ length: 50 }, () => claimRequest());
    await store.claim(claimRequest());
    sent.length = 0;
    await Promise.all(requests.map((request) => store.claim(request)));
    await Promise.all(requests.map((request) => store.extend(request)));
    await Promise.all(requests.map((request) => store.complete(completion(request))));
    const replays = await Promise.all(requests.map(({ key }) => store.claim(claimRequest({ key }))));
    expect(replays.every(({ kind }) => kind === "completed")).toBe(true);
    expect(sent.filter((name) => name !== "oncekey_notify")).toEqual([
      "oncekey_claim",
      "oncekey_extend",
      "oncekey_complete",
      "oncekey_claim",
    ]);
  });

  it("are answered as if they had come one after the other", { timeout: 120_000 }, async () => {
    const { store } = await openStore(fromPg(openPool(url)));
    await fc.assert(
      fc.asyncProperty(fc.array(round, { minLength: 1, maxLength: 4 }), async (rounds) => {
        const keys = [newKey(), newKey(), newKey()];
        let possible = keys.map((): readonly Current[] => [undefined]);
        for (const calls of rounds) {
          const made = calls.map((call) => callOf(call, keys));
          const answers = await Promise.all(made.map(({ send }) => send(store).then(withoutTimes)));
          possible = possible.map((states, index) => {
            const own = made.flatMap((call, at) =>
              call.index === index ? [{ ...call, answer: answers[at] }] : [],
            );
            return states.flatMap((state) => explanations(state, own));
          });
          for (const states of possible)
            expect(states.length, "orders that explain the answers").toBeGreaterThan(0);
        }
        for (const [index, key] of keys.entries()) {
          const found = await store.find(key);
          const states = possible[index]?.map((state) => state?.state);
          expect(states).toContain(found?.state);
        }
      }),
      { numRuns: 60 },
    );
  });
});

describe("what is wrong with one call", () => {
  const poison: readonly (readonly [string, RecordKey])[] = [
    ["text that Postgres cannot hold", "key\0" as RecordKey],
    ["a key too large for an index", randomBytes(9_000).toString("base64url") as RecordKey],
  ];

  it.each(poison)("%s: its neighbours claim and complete", async (_, key) => {
    const { store } = await openStore(fromPg(openPool(url)));
    const requests = Array.from({ length: 64 }, () => claimRequest());
    const bad = claimRequest({ key });
    const all = await Promise.allSettled([bad, ...requests].map((request) => store.claim(request)));
    expect(all.map(({ status }) => status)).toEqual(["rejected", ...requests.map(() => "fulfilled")]);
    const ended = await Promise.allSettled(
      [completion(bad), ...requests.map((request) => completion(request))].map((one) => store.complete(one)),
    );
    expect(ended.slice(1).every(({ status }) => status === "fulfilled")).toBe(true);
  });
});

describe("a row that somebody has locked", () => {
  it("delays no claim of another key, and is a claim that lives", async () => {
    const pool = openPool(url);
    const { store, records } = await openStore(fromPg(pool));
    const lapsed = claimRequest({ leaseMs: 1 });
    await store.claim(lapsed);
    const locker = await pool.connect();
    await locker.query("BEGIN");
    await locker.query(`SELECT 1 FROM ${records} WHERE key = $1 FOR UPDATE`, [lapsed.key]);
    try {
      const repeat = store.claim(claimRequest({ key: lapsed.key }));
      const others = Array.from({ length: 50 }, () => store.claim(claimRequest()));
      const kinds = (await Promise.all(others)).map(({ kind }) => kind);
      expect(new Set(kinds)).toEqual(new Set(["claimed"]));
      expect(await repeat).toMatchObject({ kind: "in-flight", holder: lapsed.token });
    } finally {
      await locker.query("ROLLBACK");
      locker.release();
    }
    expect(await store.claim(claimRequest({ key: lapsed.key }))).toMatchObject({
      kind: "claimed",
      takeover: true,
    });
  });

  it("delays no completion and no renewal of another key", async () => {
    const pool = openPool(url);
    const { store, records } = await openStore(fromPg(pool));
    const locked = claimRequest();
    const others = Array.from({ length: 20 }, () => claimRequest());
    for (const request of [locked, ...others]) await store.claim(request);
    const locker = await pool.connect();
    await locker.query("BEGIN");
    await locker.query(`SELECT 1 FROM ${records} WHERE key = $1 FOR UPDATE`, [locked.key]);
    try {
      const stuck = Promise.allSettled([store.extend(locked), store.complete(completion(locked))]);
      await Promise.all(others.map((request) => store.extend(request)));
      await Promise.all(others.map((request) => store.complete(completion(request))));
      expect(await stuck).toMatchObject([
        { status: "rejected", reason: { code: "STORE_UNAVAILABLE" } },
        { status: "rejected", reason: { code: "STORE_UNAVAILABLE" } },
      ]);
    } finally {
      await locker.query("ROLLBACK");
      locker.release();
    }
    expect(await store.complete(completion(locked))).toEqual({ kind: "completed", how: "stored" });
  });

  it("is left alone by a purge", async () => {
    const pool = openPool(url);
    const { store, records } = await openStore(fromPg(pool));
    const request = claimRequest({ retentionMs: 1 });
    await store.claim(request);
    await store.complete(completion(request));
    const locker = await pool.connect();
    await locker.query("BEGIN");
    await locker.query(`SELECT 1 FROM ${records} WHERE key = $1 FOR KEY SHARE`, [request.key]);
    expect(await store.purge(10)).toBe(0);
    await locker.query("ROLLBACK");
    locker.release();
    expect(await store.purge(10)).toBe(1);
  });
});

type Current = StoredRecord | undefined;

interface Call {
  readonly what: "claim" | "complete" | "extend" | "release";
  readonly key: number;
  readonly token: string;
  readonly asked: string;
}

const call: fc.Arbitrary<Call> = fc.record({
  what: fc.constantFrom("claim", "claim", "complete", "extend", "release"),
  key: fc.nat({ max: 2 }),
  token: fc.constantFrom("A", "B", "C"),
  asked: fc.constantFrom("pay 10", "pay 10", "pay 20"),
});
/** Calls that are made in one turn of the event loop. */
const round = fc.array(call, { minLength: 1, maxLength: 9 });

interface MadeCall {
  readonly index: number;
  send(store: Awaited<ReturnType<typeof openStore>>["store"]): Promise<object>;
  transition(record: Current): Change<object>;
}

/** Time stands still in the model: leases and retention are longer than the test. */
const NOW_MS = 0;

function callOf({ what, key, token, asked }: Call, keys: readonly RecordKey[]): MadeCall {
  const parts = { key: keys[key] as RecordKey, token: `${token}-${keys[key]}` as ClaimToken };
  const request: ClaimRequest = claimRequest({ ...parts, fingerprint: fingerprint(asked) });
  const calls = {
    claim: [(store) => store.claim(request), (record) => claimRecord(record, request, NOW_MS)],
    extend: [(store) => store.extend(request), (record) => extendRecord(record, request, NOW_MS)],
    complete: [
      (store) => store.complete({ ...completion(request, asked), ...identityOf(request) }),
      (record) => completeRecord(record, { ...completion(request, asked), ...identityOf(request) }, NOW_MS),
    ],
    release: [
      (store) => store.release(releaseOf(request)),
      (record) => releaseRecord(record, releaseOf(request), NOW_MS),
    ],
  } satisfies Record<Call["what"], [MadeCall["send"], MadeCall["transition"]]>;
  const [send, transition] = calls[what];
  return { index: key, send, transition };
}

interface AnsweredCall extends MadeCall {
  readonly answer: unknown;
}

/** The states that the calls can have left, over all orders in which they would have been answered like this. */
function explanations(state: Current, calls: readonly AnsweredCall[]): readonly Current[] {
  if (calls.length === 0) return [state];
  const after = calls.flatMap((one, at) => {
    const { outcome, record } = one.transition(state);
    if (JSON.stringify(withoutTimes(outcome)) !== JSON.stringify(one.answer)) return [];
    return explanations(
      record,
      calls.filter((_, other) => other !== at),
    );
  });
  const byText = new Map(after.map((record) => [JSON.stringify(record), record]));
  return [...byText.values()];
}

/** What depends on when it was asked is not compared. */
function withoutTimes(answer: object): object {
  return Object.fromEntries(
    Object.entries(answer)
      .filter(([name]) => name !== "remainingMs")
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );
}
