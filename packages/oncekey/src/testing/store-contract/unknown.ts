/**
 * @module
 * The contract of unknown outcomes: nothing starts until somebody says how it ended, and one at a time finds out.
 */
import type { ReconcileRequest } from "../../core/store.js";
import { claimRequest, identityOf, newToken, repeatOf } from "../requests.js";
import { equal, has, kind, ok } from "./check.js";
import { group, SHORT_MS } from "./context.js";
import { completion, makeUnknown, outcome, releaseOf, versionIn } from "./scenes.js";

const LONG_MS = 30_000;

export const unknown = group("unknown", [
  {
    name: "a lapsed claim that holds becomes unknown instead of being taken over",
    why: "At-most-once would start twice.",
    async run({ store, lapse }) {
      const request = claimRequest({ guarantee: "at-most-once", onLapse: "hold", leaseMs: SHORT_MS });
      await store.claim(request);
      await lapse();
      const answer = kind(await store.claim(repeatOf(request)), "unknown", "the next claim");
      has(answer, { madeBy: request.token, attempt: 1, compared: true }, "who made it unknown");
      has(await store.find(request.key), { state: "unknown", version: answer.version }, "the record");
    },
  },
  {
    name: "the stricter rule of record and caller decides what a lapse means",
    why: "A deploy that turns at-most-once on (or off) would run what was started under the other rule.",
    async run({ store, lapse }) {
      const loose = claimRequest({ leaseMs: SHORT_MS });
      const strict = claimRequest({ leaseMs: SHORT_MS, guarantee: "at-most-once", onLapse: "hold" });
      await store.claim(loose);
      await store.claim(strict);
      await lapse();
      const strictCaller = repeatOf(loose, { guarantee: "at-most-once", onLapse: "hold" });
      kind(await store.claim(strictCaller), "unknown", "a strict caller on a loose record");
      const looseCaller = repeatOf(strict, { guarantee: "at-least-once", onLapse: "takeover" });
      kind(await store.claim(looseCaller), "unknown", "a loose caller on a strict record");
    },
  },
  {
    name: "what is declared unknown is unknown to everybody",
    why: "The holder itself would start again, not knowing that it did before.",
    async run(context) {
      const { store } = context;
      const request = await makeUnknown(context);
      kind(await store.claim(repeatOf(request)), "unknown", "another");
      kind(await store.claim(request), "unknown", "the holder itself");
      equal(await store.extend(request), { kind: "unknown" }, "extend by the holder");
      equal(await store.extend(repeatOf(request)), { kind: "replaced" }, "extend by another");
      equal(await store.status([request.key]), [{ state: "unknown", holder: request.token }], "status");
      const again = { ...identityOf(request), attempt: 1, code: undefined };
      equal(await store.markUnknown(again), { kind: "unknown" }, "declared again");
      has(await store.find(request.key), { state: "unknown", lastCode: "E_TIMEOUT" }, "the record");
    },
  },
  {
    name: "only the holder declares a claim unknown, and one that is gone is made again as unknown",
    why: "A stranger would block the key; a lost record would let it run.",
    async run({ store }) {
      const request = claimRequest({ onLapse: "hold", guarantee: "at-most-once" });
      const mark = { ...identityOf(request), attempt: 1, code: undefined };
      equal(await store.markUnknown(mark), { kind: "unknown" }, "of no record");
      kind(await store.claim(repeatOf(request)), "unknown", "the next claim");
      const held = claimRequest();
      await store.claim(held);
      const stranger = { ...identityOf(repeatOf(held)), attempt: 1, code: undefined };
      equal(await store.markUnknown(stranger), { kind: "replaced" }, "by a stranger");
      equal(await store.extend(held), { kind: "extended" }, "the holder afterwards");
    },
  },
  {
    name: "an unknown outcome never expires and is never purged",
    why: "After its retention the key would be free, and the work would run a second time.",
    async run(context) {
      const { store, lapse, sleep } = context;
      const request = await makeUnknown(context, { leaseMs: SHORT_MS, retentionMs: SHORT_MS });
      await lapse();
      await sleep(SHORT_MS);
      equal(await store.purge(100), 0, "purged");
      has(await store.find(request.key), { state: "unknown", expiresInMs: undefined }, "the record");
      kind(await store.claim(repeatOf(request)), "unknown", "the next claim");
    },
  },
  {
    name: "one reconciler at a time, and whoever asks meanwhile is in flight",
    why: 'Two that find out "not done" both start the work.',
    async run(context) {
      const { store, connections } = context;
      const request = await makeUnknown(context);
      const rivals = Array.from({ length: 16 }, () => reconcileOf(request));
      const stores = await connections(4);
      const answers = await Promise.all(
        rivals.map((rival, index) => (stores[index % stores.length] ?? store).reconcile(rival)),
      );
      const winners = rivals.filter((_, index) => answers[index]?.kind === "reconciling");
      const [winner] = winners;
      ok(winner && winners.length === 1, `${winners.length} reconcilers at once`);
      has(
        answers.find(({ kind: of }) => of !== "reconciling"),
        { kind: "in-flight", holder: winner.token },
        "a loser",
      );
      has(await store.claim(repeatOf(request)), { kind: "in-flight", holder: winner.token }, "a claim");
      equal(await store.status([request.key]), [{ state: "claimed", holder: winner.token }], "status");
      has(await store.find(request.key), { state: "unknown", reconciling: true }, "the record");
      kind(await store.reconcile(winner), "reconciling", "the winner again");
    },
  },
  {
    name: "a reconciler that crashes frees its place when its lease ends",
    why: "The outcome would stay unknown for ever, or two reconcilers speak.",
    async run(context) {
      const { store, lapse } = context;
      const request = await makeUnknown(context);
      const first = reconcileOf(request, SHORT_MS);
      const old = kind(await store.reconcile(first), "reconciling", "the first").record.version;
      await lapse();
      kind(await store.claim(repeatOf(request)), "unknown", "a claim after its lease");
      const second = reconcileOf(request);
      const { record } = kind(await store.reconcile(second), "reconciling", "the second");
      const verdict = { kind: "not-performed" } as const;
      const late = { key: request.key, token: first.token, version: old, verdict, evenIfLive: false };
      kind(await store.resolve(late), "changed", "the verdict of the first");
      const timely = { ...late, token: second.token, version: record.version };
      equal(await store.resolve(timely), { kind: "resolved", attempt: 1 }, "the verdict of the second");
    },
  },
  {
    name: "only what is unknown, by the claim that was looked at, is reconciled",
    why: "A reconciler would judge an attempt that it knows nothing of.",
    async run(context) {
      const { store } = context;
      const request = await makeUnknown(context);
      equal(
        await store.reconcile({ ...reconcileOf(request), madeBy: newToken() }),
        { kind: "changed" },
        "another's",
      );
      const held = claimRequest();
      await store.claim(held);
      equal(await store.reconcile(reconcileOf(held)), { kind: "changed" }, "a live claim");
      equal(await store.reconcile(reconcileOf(claimRequest())), { kind: "changed" }, "no record");
    },
  },
  {
    name: "the work's own word wins until the verdict lands",
    why: "A guess would overrule the one who knows.",
    async run(context) {
      const { store } = context;
      const [done, undone] = [await makeUnknown(context), await makeUnknown(context)];
      for (const request of [done, undone])
        kind(await store.reconcile(reconcileOf(request)), "reconciling", "begun");
      const versions = [await versionIn(context, done), await versionIn(context, undone)];
      equal(
        await store.complete(completion(done)),
        { kind: "completed", how: "late" },
        "completed meanwhile",
      );
      equal(await store.release(releaseOf(undone)), { kind: "released" }, "released meanwhile");
      const verdict = { kind: "restart", leaseMs: LONG_MS, maxAttempts: undefined } as const;
      const rest = { token: newToken(), verdict, evenIfLive: true };
      const [ofDone, ofUndone] = versions;
      ok(ofDone && ofUndone, "versions");
      kind(
        await store.resolve({ key: done.key, version: ofDone, ...rest }),
        "changed",
        "told of the completion",
      );
      kind(
        await store.resolve({ key: undone.key, version: ofUndone, ...rest }),
        "absent",
        "told of the release",
      );
      has(await store.claim(repeatOf(done)), { kind: "completed", outcome: outcome("paid 10") }, "a repeat");
    },
  },
]);

function reconcileOf(
  request: { readonly key: ReconcileRequest["key"]; readonly token: ReconcileRequest["token"] },
  leaseMs = LONG_MS,
): ReconcileRequest {
  return { key: request.key, madeBy: request.token, token: newToken(), leaseMs };
}
