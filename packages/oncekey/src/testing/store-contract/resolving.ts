/**
 * @module
 * The contract of verdicts, by a reconciler or an operator: each is a compare-and-set on what was looked at.
 */
import type { RecordVersion } from "../../core/record.js";
import type { ClaimRequest, ResolveRequest, Verdict } from "../../core/store.js";
import { claimRequest, fingerprint, newToken, repeatOf } from "../requests.js";
import { equal, has, kind, ok } from "./check.js";
import { group, SHORT_MS } from "./context.js";
import { completion, makeUnknown, outcome, releaseOf, versionIn } from "./scenes.js";

const FIRST = { kind: "claimed", attempt: 1, takeover: false, compared: true };
const PAID: Verdict = { kind: "completed", outcome: outcome("paid, says the bank"), retentionMs: undefined };
const NOT_PERFORMED: Verdict = { kind: "not-performed" };
const FORGOTTEN: Verdict = { kind: "forgotten" };
const RESTART: Verdict = { kind: "restart", leaseMs: 30_000, maxAttempts: undefined };

export const resolving = group("resolving", [
  {
    name: "completed: repeats get the verdict's outcome, also if it is asked again",
    why: "An operator who repeats a command would see it fail, or change what was said.",
    async run(context) {
      const { store } = context;
      const request = await makeUnknown(context);
      const resolve = verdictOn(request, await versionIn(context, request), PAID);
      equal(await store.resolve(resolve), { kind: "resolved", attempt: 1 }, "the verdict");
      equal(await store.resolve(resolve), { kind: "resolved", attempt: 1 }, "asked again");
      has(
        await store.claim(repeatOf(request)),
        { kind: "completed", outcome: outcome("paid, says the bank"), completedBy: resolve.token },
        "a repeat",
      );
      kind(await store.complete(completion(request)), "replaced", "the work, after the verdict");
    },
  },
  {
    name: "a completed record keeps its first outcome, whatever a verdict says; it can only be forgotten",
    why: "Two callers of one key would get two results.",
    async run(context) {
      const { store } = context;
      const request = claimRequest();
      await store.claim(request);
      await store.complete(completion(request));
      const version = await versionIn(context, request);
      for (const verdict of [PAID, NOT_PERFORMED, RESTART, { kind: "unknown" } as const]) {
        kind(await store.resolve(verdictOn(request, version, verdict)), "changed", verdict.kind);
      }
      has(
        await store.claim(repeatOf(request)),
        { kind: "completed", completedBy: request.token },
        "a repeat",
      );
      kind(await store.resolve(verdictOn(request, version, FORGOTTEN)), "resolved", "forgotten");
    },
  },
  {
    name: "completed: for the retention that the verdict gives",
    why: "An operator could neither keep it longer nor let it go sooner.",
    async run(context) {
      const { store, lapse } = context;
      const request = await makeUnknown(context);
      const brief = { ...PAID, retentionMs: SHORT_MS } as Verdict;
      await store.resolve(verdictOn(request, await versionIn(context, request), brief));
      kind(await store.claim(repeatOf(request)), "completed", "at once");
      await lapse();
      equal(await store.claim(repeatOf(request)), FIRST, "after its retention");
    },
  },
  {
    name: "restart: who says so holds the next attempt, and the former holder is replaced",
    why: "The work would start with nobody holding the key, or with two.",
    async run(context) {
      const { store } = context;
      const request = await makeUnknown(context);
      const resolve = verdictOn(request, await versionIn(context, request), RESTART);
      equal(await store.resolve(resolve), { kind: "resolved", attempt: 2 }, "the verdict");
      equal(await store.resolve(resolve), { kind: "resolved", attempt: 2 }, "asked again");
      has(await store.claim(repeatOf(request)), { kind: "in-flight", holder: resolve.token }, "a claim");
      equal(
        await store.complete(completion(request)),
        { kind: "replaced", by: undefined },
        "the former holder",
      );
      const own = { ...completion(request, "second try", 2), token: resolve.token };
      equal(await store.complete(own), { kind: "completed", how: "stored" }, "the new one");
    },
  },
  {
    name: "restart: not beyond maxAttempts",
    why: "Reconciling would be a way around the limit.",
    async run(context) {
      const { store } = context;
      const request = await makeUnknown(context);
      const limited = { ...RESTART, maxAttempts: 1 } as Verdict;
      const resolve = verdictOn(request, await versionIn(context, request), limited);
      equal(await store.resolve(resolve), { kind: "exhausted", attempts: 1 }, "the verdict");
      has(await store.find(request.key), { state: "unknown" }, "the record");
    },
  },
  {
    name: "unknown: it stays unknown, and the next reconciler may try at once",
    why: "Every reconciler that cannot tell would block the next for a lease.",
    async run(context) {
      const { store } = context;
      const request = await makeUnknown(context);
      const first = { key: request.key, madeBy: request.token, token: newToken(), leaseMs: 30_000 };
      const { record } = kind(await store.reconcile(first), "reconciling", "the first");
      const resolve = { ...verdictOn(request, record.version, { kind: "unknown" }), token: first.token };
      equal(await store.resolve(resolve), { kind: "resolved", attempt: 1 }, "the verdict");
      has(await store.find(request.key), { state: "unknown", reconciling: false }, "the record");
      kind(await store.reconcile({ ...first, token: newToken() }), "reconciling", "the second");
    },
  },
  {
    name: "not performed, forgotten: the key is free, but not for whoever held it",
    why: "Work that still runs somewhere would make the record again, after somebody decided about it.",
    async run(context) {
      const { store } = context;
      for (const verdict of [NOT_PERFORMED, FORGOTTEN]) {
        const request = await makeUnknown(context);
        const resolve = verdictOn(request, await versionIn(context, request), verdict);
        equal(await store.resolve(resolve), { kind: "resolved", attempt: 1 }, verdict.kind);
        equal(
          await store.complete(completion(request)),
          { kind: "replaced", by: undefined },
          "the former holder",
        );
        equal(await store.extend(request), { kind: "replaced" }, "its lease");
        equal(await store.claim(repeatOf(request)), FIRST, "the next claim");
      }
    },
  },
  {
    name: "forgotten: as if a completed key had never been seen",
    why: "An operator could not let a customer pay again.",
    async run(context) {
      const { store } = context;
      const request = claimRequest();
      await store.claim(request);
      await store.complete(completion(request));
      const resolve = verdictOn(request, await versionIn(context, request), FORGOTTEN);
      equal(await store.resolve(resolve), { kind: "resolved", attempt: 1 }, "the verdict");
      equal(await store.find(request.key), undefined, "the record");
      equal(await store.resolve(resolve), { kind: "absent" }, "asked again");
    },
  },
  {
    name: "forgotten for a time: the key is refused until then, and new afterwards",
    why: "Its work would run anew while a process that keeps copies still replays the old result.",
    async run(context) {
      const { store, lapse } = context;
      const request = claimRequest();
      await store.claim(request);
      await store.complete(completion(request));
      const verdict = { kind: "forgotten", refuseForMs: SHORT_MS } as const;
      const resolve = verdictOn(request, await versionIn(context, request), verdict);
      equal(await store.resolve(resolve), { kind: "resolved", attempt: 1 }, "the verdict");
      kind(await store.claim(repeatOf(request)), "in-flight", "a repeat");
      kind(
        await store.claim({ ...repeatOf(request), fingerprint: fingerprint("pay 20") }),
        "in-flight",
        "another",
      );
      kind(await store.resolve(resolve), "resolved", "asked again");
      has(await store.complete(completion(request)), { kind: "replaced" }, "the completion, once more");
      await lapse();
      equal(await store.claim(repeatOf(request)), FIRST, "the next claim");
    },
  },
  {
    name: "a live claim is not taken away by the way, but can be on purpose",
    why: "A slip at three in the morning would start work beside work that runs.",
    async run(context) {
      const { store } = context;
      const request = claimRequest();
      await store.claim(request);
      const resolve = verdictOn(request, await versionIn(context, request), NOT_PERFORMED);
      const refused = kind(await store.resolve(resolve), "live", "without evenIfLive");
      ok(
        refused.remainingMs > 20_000 && refused.remainingMs <= 30_000,
        `remainingMs: ${refused.remainingMs}`,
      );
      equal(await store.extend(request), { kind: "extended" }, "the holder, undisturbed");
      const forced = { ...resolve, evenIfLive: true };
      equal(await store.resolve(forced), { kind: "resolved", attempt: 1 }, "with evenIfLive");
      equal(await store.extend(request), { kind: "replaced" }, "extend by the former holder");
      equal(await store.complete(completion(request)), { kind: "replaced", by: undefined }, "its completion");
      equal(await store.release(releaseOf(request)), { kind: "not-held" }, "its release");
      equal(await store.claim(repeatOf(request)), FIRST, "the next claim");
    },
  },
  {
    name: "a record that a reconciler holds is live for others, not for the reconciler",
    why: "Two verdicts would meet.",
    async run(context) {
      const { store } = context;
      const request = await makeUnknown(context);
      const reconciler = { key: request.key, madeBy: request.token, token: newToken(), leaseMs: 30_000 };
      const { record } = kind(await store.reconcile(reconciler), "reconciling", "the reconciler");
      const foreign = verdictOn(request, record.version, NOT_PERFORMED);
      kind(await store.resolve(foreign), "live", "an operator");
      const own = { ...foreign, token: reconciler.token };
      equal(await store.resolve(own), { kind: "resolved", attempt: 1 }, "the reconciler");
    },
  },
  {
    name: "a verdict on what has changed meanwhile changes nothing",
    why: "An operator decides on what the screen showed.",
    async run(context) {
      const { store } = context;
      const request = claimRequest();
      await store.claim(request);
      const seen = await versionIn(context, request);
      equal(await store.extend(request), { kind: "extended" }, "a heartbeat");
      equal(await versionIn(context, request), seen, "the version after a heartbeat");
      await store.complete(completion(request));
      const late = { ...verdictOn(request, seen, FORGOTTEN), evenIfLive: true };
      const answer = kind(await store.resolve(late), "changed", "the verdict");
      has(
        answer.record,
        { state: "completed", version: await versionIn(context, request) },
        "what is there now",
      );
      kind(await store.claim(repeatOf(request)), "completed", "a repeat");
      equal(
        await store.resolve(verdictOn(claimRequest(), seen, FORGOTTEN)),
        { kind: "absent" },
        "of no record",
      );
    },
  },
  {
    name: "of many verdicts on one version exactly one is applied",
    why: "Two operators press the button at once.",
    async run(context) {
      const { connections } = context;
      const stores = await connections(4);
      const request = await makeUnknown(context);
      const version = await versionIn(context, request);
      const answers = await Promise.all(
        [...stores, ...stores].map((store) => store.resolve(verdictOn(request, version, PAID))),
      );
      const resolved = answers.filter((answer) => answer.kind === "resolved");
      equal(resolved.length, 1, "verdicts applied");
      equal(answers.filter((answer) => answer.kind === "changed").length, answers.length - 1, "told of it");
    },
  },
]);

function verdictOn({ key }: ClaimRequest, version: RecordVersion, verdict: Verdict): ResolveRequest {
  return { key, version, token: newToken(), verdict, evenIfLive: false };
}
