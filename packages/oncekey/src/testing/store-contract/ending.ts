/**
 * @module
 * The contract of faults and of the end: an unreadable record is an error, and a closed store says so.
 */
import { claimRequest, identityOf, newToken, repeatOf } from "../requests.js";
import { equal, has, kind, ok, refuses } from "./check.js";
import { group } from "./context.js";
import { completion, releaseOf, versionIn } from "./scenes.js";

export const ending = group("ending", [
  {
    name: "a record that cannot be read is an error, never no record",
    why: "The work would run again because a byte flipped.",
    async run(context) {
      const { store, damage } = context;
      const [request, neighbour] = [claimRequest(), claimRequest()];
      for (const one of [request, neighbour]) {
        await store.claim(one);
        await store.complete(completion(one));
      }
      await damage(request.key);
      await refuses(() => store.claim(repeatOf(request)), "RECORD_UNREADABLE", "a repeat");
      await refuses(() => store.claim(repeatOf(request)), "RECORD_UNREADABLE", "the next repeat");
      await refuses(() => store.find(request.key), "RECORD_UNREADABLE", "find");
      kind(await store.claim(repeatOf(neighbour)), "completed", "its neighbour");
    },
  },
  {
    name: "an unreadable record does not spoil the batch that it is in",
    why: "One damaged key would refuse sixty-three strangers.",
    async run(context) {
      const { store, damage } = context;
      const requests = Array.from({ length: 8 }, () => claimRequest());
      await Promise.all(requests.map((request) => store.claim(request)));
      const [damaged, ...others] = requests;
      if (damaged === undefined) return;
      await damage(damaged.key);
      const refused = refuses(() => store.complete(completion(damaged)), "RECORD_UNREADABLE", "complete");
      const answers = await Promise.all(others.map((request) => store.complete(completion(request))));
      await refused;
      for (const answer of answers) equal(answer, { kind: "completed", how: "stored" }, "a stranger");
    },
  },
  {
    name: "an unreadable record disturbs nobody else's waiting, and an operator can remove it",
    why: "One damaged key would wake every waiter of the process, and stay for ever.",
    async run(context) {
      const { store, damage } = context;
      const [request, neighbour] = [claimRequest(), claimRequest()];
      for (const one of [request, neighbour]) await store.claim(one);
      await damage(request.key);
      const [damaged, other] = await store.status([request.key, neighbour.key]);
      has(damaged, { state: "lapsed", holder: undefined }, "its own status");
      has(other, { state: "claimed", holder: neighbour.token }, "its neighbour's");
      ok(store.discard, "the store can discard nothing");
      await store.discard(request.key);
      await store.discard(request.key);
      has(await store.claim(repeatOf(request)), { kind: "claimed", attempt: 1 }, "the next claim");
    },
  },
  {
    name: "a closed store refuses every call, and may be closed again",
    why: "A call that never answers holds up the shutdown; an answer that nobody stored is a lie.",
    async run(context) {
      const { store } = context;
      const request = claimRequest();
      await store.claim(request);
      const version = await versionIn(context, request);
      await store.close();
      await store.close();
      const { key, token } = request;
      const verdict = { kind: "unknown" } as const;
      const calls: readonly [string, () => unknown][] = [
        ["claim", () => store.claim(request)],
        ["extend", () => store.extend(request)],
        ["complete", () => store.complete(completion(request))],
        ["release", () => store.release(releaseOf(request))],
        ["markUnknown", () => store.markUnknown({ ...identityOf(request), attempt: 1, code: undefined })],
        ["reconcile", () => store.reconcile({ key, madeBy: token, token: newToken(), leaseMs: 1_000 })],
        ["resolve", () => store.resolve({ key, version, token: newToken(), verdict, evenIfLive: true })],
        ["status", () => store.status([key])],
        ["find", () => store.find(key)],
        ["list", () => store.list({ limit: 1 })],
        ["purge", () => store.purge(1)],
      ];
      for (const [name, call] of calls) await refuses(call, "STORE_UNAVAILABLE", name);
    },
  },
  {
    name: "one connection that is closed leaves the others working",
    why: "A deploy that stops one process would stop all of them.",
    async run({ connections }) {
      const [one, other] = await connections(2);
      if (one === undefined || other === undefined || one === other) {
        throw new Error("There is only one connection");
      }
      const request = claimRequest();
      await one.claim(request);
      await one.close();
      has(await other.claim(repeatOf(request)), { kind: "in-flight", holder: request.token }, "the other");
    },
  },
]);
