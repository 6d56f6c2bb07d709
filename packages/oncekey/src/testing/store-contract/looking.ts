/**
 * @module
 * The contract of looking: what operators and waiters read, without changing anything.
 */
import type { ListRequest } from "../../core/store.js";
import { claimRequest, newKey, newScopeId, repeatOf } from "../requests.js";
import { equal, has, ok, refuses } from "./check.js";
import { group, SHORT_MS, type StoreContext } from "./context.js";
import { completion, makeUnknown, releaseOf } from "./scenes.js";

export const looking = group("looking", [
  {
    name: "a record is found with all that an operator has to know",
    why: "Whoever is called at night decides on this alone.",
    async run({ store, sleep }) {
      equal(await store.find(newKey()), undefined, "a key that nobody has seen");
      const request = claimRequest({ label: "order-17", leaseMs: 30_000, retentionMs: 60_000 });
      await store.claim(request);
      await sleep(100);
      const held = await store.find(request.key);
      const { key, scopeId, operation, label, guarantee, fingerprint } = request;
      const who = { key, scopeId, operation, label, guarantee, fingerprint };
      has(held, { ...who, state: "claimed", attempt: 1, lapsed: false, reconciling: false }, "while claimed");
      ok(held && held.ageMs >= 90 && held.ageMs < 20_000, `ageMs: ${held?.ageMs}`);
      ok(
        held.leaseRemainingMs > 10_000 && held.leaseRemainingMs <= 29_910,
        `leaseRemainingMs: ${held.leaseRemainingMs}`,
      );
      await store.complete(completion(request));
      const done = await store.find(request.key);
      has(
        done,
        { ...who, state: "completed", tombstone: false, resultBytes: 7, leaseRemainingMs: 0 },
        "completed",
      );
      ok(
        done && done.inStateMs <= done.ageMs && done.ageMs >= 90,
        `inStateMs ${done?.inStateMs} of ${done?.ageMs}`,
      );
      ok(done.expiresInMs && done.expiresInMs <= 60_000, `expiresInMs: ${done.expiresInMs}`);
      ok(done.version !== held.version, "another version in another state");
    },
  },
  {
    name: "the status of many keys comes in the order asked",
    why: "A waiter would be told about somebody else's key.",
    async run(context) {
      const { store, lapse } = context;
      const lapsed = claimRequest({ leaseMs: SHORT_MS });
      await store.claim(lapsed);
      const unknown = await makeUnknown(context);
      await lapse();
      const claimed = claimRequest();
      await store.claim(claimed);
      const completed = claimRequest();
      await store.claim(completed);
      await store.complete(completion(completed));
      const released = claimRequest({ maxAttempts: 3 });
      await store.claim(released);
      await store.release(releaseOf(released, { keepAttempts: true }));
      const absent = claimRequest();
      const asked = [completed, absent, lapsed, claimed, released, unknown, completed];
      equal(
        await store.status(asked.map(({ key }) => key)),
        [
          { state: "completed", holder: completed.token },
          { state: "absent", holder: undefined },
          { state: "lapsed", holder: lapsed.token },
          { state: "claimed", holder: claimed.token },
          { state: "released", holder: released.token },
          { state: "unknown", holder: unknown.token },
          { state: "completed", holder: completed.token },
        ],
        "the states",
      );
      equal(await store.status([]), [], "of no keys");
      const many = Array.from({ length: 2_000 }, (_, index) => (index === 1_234 ? claimed.key : newKey()));
      const states = await store.status(many);
      equal(
        [states.length, states[1_234]?.state, states[1_233]?.state],
        [2_000, "claimed", "absent"],
        "of many",
      );
    },
  },
  {
    name: "records are listed by scope, operation, state and age",
    why: '"Which keys are stuck?" would have no answer.',
    async run(context) {
      const { store, lapse } = context;
      const scopeId = newScopeId();
      const old = claimRequest({ scopeId, leaseMs: SHORT_MS });
      await store.claim(old);
      const unknown = await makeUnknown(context, { scopeId, operation: "POST /refunds" });
      await lapse();
      const [young, stranger] = [claimRequest({ scopeId }), claimRequest()];
      await Promise.all([store.claim(young), store.claim(stranger)]);
      const list = async (request: Partial<ListRequest>): Promise<readonly string[]> =>
        (await store.list({ limit: 10, ...request })).records.map(({ key }) => key).sort();
      const keys = (...requests: readonly { readonly key: string }[]) =>
        requests.map(({ key }) => key).sort();
      // First, and at once: the young ones age.
      const byAge = [list({ olderThanMs: SHORT_MS }), list({ olderThanMs: SHORT_MS, state: "claimed" })];
      equal(await Promise.all(byAge), [keys(old, unknown), keys(old)], "by age, and by age and state");
      equal(await list({}), keys(old, unknown, young, stranger), "everything");
      equal(await list({ scopeId }), keys(old, unknown, young), "by scope");
      equal(await list({ operation: "POST /refunds" }), keys(unknown), "by operation");
      equal(await list({ state: "claimed" }), keys(old, young, stranger), "claimed");
      equal(await list({ state: "lapsed" }), keys(old), "lapsed");
      equal(await list({ state: "unknown", scopeId }), keys(unknown), "unknown in the scope");
      equal(await list({ state: "completed" }), [], "completed");
      has(
        (await store.list({ limit: 1, state: "lapsed" })).records[0],
        { lapsed: true, attempt: 1 },
        "as found",
      );
    },
  },
  {
    name: "pages show every record once, whatever comes and goes between them",
    why: "An operator who pages through would miss a stuck key.",
    run: pagesAreStable,
  },
  {
    name: "what has expired is not listed",
    why: "An operator would act on records that are not there.",
    async run({ store, lapse }) {
      const request = claimRequest({ retentionMs: SHORT_MS });
      await store.claim(request);
      await store.complete(completion(request));
      await lapse();
      equal(await store.list({ limit: 10 }), { records: [], cursor: undefined }, "the list");
    },
  },
  {
    name: "a list without sense is refused",
    why: "An unbounded page stops the process that asked for it.",
    async run({ store }) {
      for (const limit of [0, -1, 1.5, 1_001, Number.NaN]) {
        await refuses(() => store.list({ limit }), "CONFIGURATION_INVALID", `limit ${limit}`);
      }
      const cursor = "no page of this store gave this";
      await refuses(() => store.list({ limit: 1, cursor }), "CONFIGURATION_INVALID", "a foreign cursor");
    },
  },
  {
    name: "looking changes nothing",
    why: "A dashboard would keep claims alive.",
    async run({ store, sleep }) {
      const request = claimRequest({ leaseMs: SHORT_MS });
      await store.claim(request);
      await sleep(SHORT_MS / 2);
      await store.find(request.key);
      await store.status([request.key]);
      await store.list({ limit: 10 });
      await sleep(SHORT_MS / 2 + 60);
      has(
        await store.claim(repeatOf(request)),
        { kind: "claimed", takeover: true },
        "a claim at the lease's end",
      );
    },
  },
]);

async function pagesAreStable({ store }: StoreContext): Promise<void> {
  const scopeId = newScopeId();
  const requests = Array.from({ length: 25 }, () => claimRequest({ scopeId }));
  for (const request of requests) await store.claim(request);
  const [leaving, ...staying] = requests;
  ok(leaving, "a record that goes");
  const seen: string[] = [];
  let cursor: string | undefined;
  let pages = 0;
  do {
    const page = await store.list({ scopeId, limit: 4, cursor });
    ok(page.records.length <= 4, `a page of ${page.records.length}`);
    seen.push(...page.records.map(({ key }) => key));
    cursor = page.cursor;
    pages++;
    // Between two pages one comes, one goes and one changes.
    await store.claim(claimRequest({ scopeId }));
    if (pages === 1) await store.release(releaseOf(leaving));
    const changing = staying[pages];
    if (changing !== undefined) await store.complete(completion(changing));
  } while (cursor !== undefined && pages < 50);
  equal(new Set(seen).size, seen.length, "no record twice");
  equal(
    staying.filter(({ key }) => !seen.includes(key)),
    [],
    "records that were there throughout and were not shown",
  );
  const exact = await store.list({ limit: 1_000, scopeId });
  equal(exact.cursor, undefined, "the cursor of the last page");
}
