/** A contract that lets a broken store pass promises nothing: each fault here has to be caught. */
import { memoryStore } from "oncekey/stores/memory";
import { describe, expect, it } from "vitest";
import type { StoredOutcome } from "../../core/record.js";
import type { CompleteRequest, Store } from "../../core/store.js";
import { manualClock } from "../manual-clock.js";
import type { TestRunner } from "../test-runner.js";
import { bindStoreContract, runStoreCase, type StoreContractSetup, storeContract } from "./index.js";

/** Not kept by any store in memory. */
const BEYOND_MEMORY = new Set([
  ...storeContract
    .filter(({ group }) => ["transactions", "joining", "pinning"].includes(group))
    .map(({ name }) => name),
  "a record that cannot be read is an error, never no record",
  "an unreadable record does not spoil the batch that it is in",
  "an unreadable record disturbs nobody else's waiting, and an operator can remove it",
  "one connection that is closed leaves the others working",
]);

function setupOf(
  breaks: (store: Store<never>) => Partial<Store<never>> = () => ({}),
): StoreContractSetup<never> {
  return {
    open() {
      const clock = manualClock();
      const store = memoryStore({ clock, sweepIntervalMs: 0 });
      return { store: { ...store, ...breaks(store) }, sleep: clock.advance };
    },
    raceRounds: 2,
  };
}

async function brokenPromises(setup: StoreContractSetup<never>): Promise<string[]> {
  const broken: string[] = [];
  for (const one of storeContract) {
    if (BEYOND_MEMORY.has(one.name)) continue;
    await runStoreCase(one, setup).catch(() => broken.push(one.name));
  }
  return broken;
}

const later = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** Each does one thing wrong, and names a case that has to notice. */
const FAULTS: readonly [
  what: string,
  notices: string,
  breaks: (store: Store<never>) => Partial<Store<never>>,
][] = [
  [
    "reads first and writes later",
    "of 64 concurrent claims exactly one wins",
    (store) => ({
      async claim(request) {
        if ((await store.find(request.key)) !== undefined) return store.claim(request);
        await later(1);
        await store.claim(request);
        return { kind: "claimed", attempt: 1, takeover: false, compared: true };
      },
    }),
  ],
  [
    "does not compare what was asked",
    "another request under the key is a mismatch in every state, and changes nothing",
    (store) => {
      const seen = new Map<string, Parameters<typeof store.claim>[0]["fingerprint"]>();
      return {
        claim(request) {
          const fingerprint = seen.get(request.key) ?? request.fingerprint;
          seen.set(request.key, fingerprint);
          return store.claim({ ...request, fingerprint });
        },
      };
    },
  ],
  [
    "lets anybody release",
    "a former holder changes nothing and is told so",
    (store) => ({
      async release(request) {
        const [status] = await store.status([request.key]);
        return store.release({ ...request, token: status?.holder ?? request.token });
      },
    }),
  ],
  [
    "takes the last outcome",
    "the first outcome stays",
    (store) => {
      const kept = new Map<string, StoredOutcome>();
      return {
        complete(request: CompleteRequest) {
          kept.set(request.key, request.outcome);
          return store.complete(request);
        },
        async claim(request) {
          const answer = await store.claim(request);
          return answer.kind === "completed"
            ? { ...answer, outcome: kept.get(request.key) ?? answer.outcome }
            : answer;
        },
      };
    },
  ],
  [
    "keeps text where bytes belong",
    "every byte comes back as it was",
    (store) => ({
      complete: (request) => store.complete({ ...request, outcome: asText(request.outcome) }),
    }),
  ],
  [
    "takes an empty body for none",
    "an empty body is a body",
    (store) => ({
      complete(request) {
        const { head, body } = request.outcome;
        return store.complete({
          ...request,
          outcome: { head, body: body?.byteLength === 0 ? undefined : body },
        });
      },
    }),
  ],
  [
    "ignores case in keys",
    "keys that look alike are different keys",
    (store) => ({ claim: (request) => store.claim({ ...request, key: lower(request.key) }) }),
  ],
  [
    "takes over what holds",
    "the stricter rule of record and caller decides what a lapse means",
    (store) => ({ claim: (request) => store.claim({ ...request, onLapse: "takeover" }) }),
  ],
  [
    "counts every claim as started",
    "a claim that was never started does not count",
    (store) => ({ release: (request) => store.release({ ...request, started: true }) }),
  ],
  [
    "lets every reconciler in",
    "one reconciler at a time, and whoever asks meanwhile is in flight",
    (store) => ({
      async reconcile(request) {
        const answer = await store.reconcile(request);
        const record = await store.find(request.key);
        return answer.kind === "in-flight" && record ? { kind: "reconciling", record } : answer;
      },
    }),
  ],
  [
    "applies a verdict to whatever is there",
    "a verdict on what has changed meanwhile changes nothing",
    (store) => ({
      async resolve(request) {
        const version = (await store.find(request.key))?.version ?? request.version;
        return store.resolve({ ...request, version });
      },
    }),
  ],
  [
    "takes live claims away",
    "a live claim is not taken away by the way, but can be on purpose",
    (store) => ({ resolve: (request) => store.resolve({ ...request, evenIfLive: true }) }),
  ],
  [
    "purges all that it finds",
    "a purge takes what has expired, in batches as small as asked",
    (store) => ({ purge: () => store.purge(1_000) }),
  ],
  [
    "wakes inside the call",
    "nobody is woken inside the call that made the change",
    (store) => {
      const wakes = new Set<() => void>();
      return {
        watch(_, wake) {
          wakes.add(wake);
          return { close: () => void wakes.delete(wake) };
        },
        complete(request) {
          const answer = store.complete(request);
          for (const wake of wakes) wake();
          return answer;
        },
      };
    },
  ],
  [
    "never wakes",
    "a completion, a release, an unknown outcome and a verdict wake whoever waits",
    () => ({ watch: () => ({ close() {} }) }),
  ],
  [
    "gives its own buffers out",
    "whoever made or was given a buffer may change it",
    (store) => {
      const given = new Map<string, StoredOutcome>();
      return {
        async claim(request) {
          const answer = await store.claim(request);
          if (answer.kind !== "completed") return answer;
          const outcome = given.get(request.key) ?? answer.outcome;
          given.set(request.key, outcome);
          return { ...answer, outcome };
        },
      };
    },
  ],
  [
    "answers the status of keys in an order of its own",
    "the status of many keys comes in the order asked",
    (store) => ({ status: async (keys) => (await store.status(keys)).toReversed() }),
  ],
  [
    "takes a list of any length",
    "a list without sense is refused",
    (store) => ({ list: (request) => store.list({ ...request, limit: 1_000 }) }),
  ],
  [
    "answers after it was closed",
    "a closed store refuses every call, and may be closed again",
    (store) => ({ find: (key) => store.find(key).catch(() => undefined) }),
  ],
];

describe("the contract of stores", () => {
  it("is kept by a store that keeps it", async () => {
    expect(await brokenPromises(setupOf())).toEqual([]);
  });

  it.each(FAULTS)("notices a store that %s", async (_, notices, breaks) => {
    const one = storeContract.find(({ name }) => name === notices);
    expect(one?.name).toBe(notices);
    if (one !== undefined) await expect(runStoreCase(one, setupOf(breaks))).rejects.toThrow();
  });

  it("has a name of its own for each case, and a reason", () => {
    const names = storeContract.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    expect(storeContract.every(({ why, group }) => why.length > 20 && group !== "")).toBe(true);
  });
});

describe("binding it to a runner", () => {
  function bound(waivers: Record<string, string>) {
    const tests = new Map<string, () => Promise<void>>();
    const runner: TestRunner = {
      describe: (_, body) => body(),
      it: (name, body) => void tests.set(name, body),
    };
    bindStoreContract(runner, { ...setupOf(), waivers });
    return tests;
  }

  it("makes a test of each case", () => {
    expect([...bound({}).keys()]).toEqual(storeContract.map(({ name }) => name));
  });

  it("fails a waiver of a promise that is kept, and passes one of a promise that is not", async () => {
    const kept = "the first outcome stays";
    const tests = bound({ [kept]: "no time", transactions: "no database" });
    await expect(tests.get(`${kept} (waived: no time)`)?.()).rejects.toThrow(/need not be waived/);
    const waived = [...tests].filter(([name]) => name.endsWith("(waived: no database)"));
    expect(waived).toHaveLength(storeContract.filter(({ group }) => group === "transactions").length);
    for (const [, run] of waived) await run();
  });

  it("refuses a waiver of nothing", () => {
    expect(() => bound({ transactoins: "no database" })).toThrow(/no case and no group.*transactoins/);
  });
});

function asText({ head, body }: StoredOutcome): StoredOutcome {
  return { head, body: body && new TextEncoder().encode(new TextDecoder().decode(body)) };
}

function lower<T extends string>(key: T): T {
  return key.toLowerCase() as T;
}
