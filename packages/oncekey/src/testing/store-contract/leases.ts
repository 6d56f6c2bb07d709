/**
 * @module
 * The contract of leases: a crash frees the key, and whoever lost its claim changes nothing any more.
 */
import { claimRequest, identityOf, newToken, repeatOf } from "../requests.js";
import { equal, has, kind, ok } from "./check.js";
import { group, SHORT_MS } from "./context.js";
import { completion, outcome, releaseOf } from "./scenes.js";

const CONTENDERS = 32;

export const leases = group("leases", [
  {
    name: "a claim is taken over once its lease has lapsed, and not before",
    why: "A crashed process would hold the key for its whole retention, or a live one would lose it.",
    async run({ store, lapse }) {
      const request = claimRequest({ leaseMs: SHORT_MS });
      await store.claim(request);
      kind(await store.claim(repeatOf(request)), "in-flight", "while the lease holds");
      await lapse();
      equal(
        await store.claim(repeatOf(request)),
        { kind: "claimed", attempt: 2, takeover: true, compared: true },
        "after it lapsed",
      );
    },
  },
  {
    name: "extending keeps a claim beyond its first lease",
    why: "Work longer than its lease would run twice.",
    async run({ store, lapse }) {
      const request = claimRequest({ leaseMs: SHORT_MS });
      await store.claim(request);
      equal(await store.extend({ ...request, leaseMs: 30_000 }), { kind: "extended" }, "the extension");
      await lapse();
      const answer = kind(await store.claim(repeatOf(request)), "in-flight", "somebody else, later");
      ok(answer.remainingMs > 20_000, `the new lease counts: ${answer.remainingMs} ms remain`);
    },
  },
  {
    name: "a lapsed claim that nobody took over is still its holder's",
    why: "A holder that was slow for a moment would lose work that nobody else has begun.",
    async run({ store, lapse }) {
      const [extended, completed, released] = [0, 0, 0].map(() => claimRequest({ leaseMs: SHORT_MS }));
      ok(extended && completed && released, "three requests");
      for (const request of [extended, completed, released]) await store.claim(request);
      await lapse();
      equal(await store.extend({ ...extended, leaseMs: 30_000 }), { kind: "extended" }, "extend");
      kind(await store.claim(repeatOf(extended)), "in-flight", "somebody else afterwards");
      equal(await store.complete(completion(completed)), { kind: "completed", how: "stored" }, "complete");
      equal(await store.release(releaseOf(released)), { kind: "released" }, "release");
    },
  },
  {
    name: "a former holder changes nothing and is told so",
    why: "A process that wakes after its lease would end the claim of the one that runs now.",
    async run({ store, lapse }) {
      const former = claimRequest({ leaseMs: SHORT_MS });
      await store.claim(former);
      await lapse();
      const present = repeatOf(former, { leaseMs: 30_000 });
      kind(await store.claim(present), "claimed", "the takeover");
      const before = await store.find(former.key);
      equal(await store.extend({ ...former, leaseMs: 60_000 }), { kind: "replaced" }, "extend");
      equal(await store.complete(completion(former)), { kind: "replaced", by: undefined }, "complete");
      equal(await store.release(releaseOf(former)), { kind: "not-held" }, "release");
      const mark = { ...identityOf(former), attempt: 1, code: undefined };
      equal(await store.markUnknown(mark), { kind: "replaced" }, "markUnknown");
      equal((await store.find(former.key))?.version, before?.version, "the record afterwards");
      has(await store.claim(repeatOf(former)), { kind: "in-flight", holder: present.token }, "a third");
    },
  },
  {
    name: "a former holder is given what its successor completed",
    why: "Its caller would get another answer than everybody else.",
    async run({ store, lapse }) {
      const former = claimRequest({ leaseMs: SHORT_MS });
      await store.claim(former);
      await lapse();
      const present = repeatOf(former);
      await store.claim(present);
      await store.complete(completion(present, "by the successor", 2));
      equal(
        await store.complete(completion(former, "too late")),
        { kind: "replaced", by: { token: present.token, outcome: outcome("by the successor") } },
        "complete of the former holder",
      );
      equal(await store.extend({ ...former, leaseMs: 1_000 }), { kind: "replaced" }, "extend");
      equal(await store.release(releaseOf(former)), { kind: "not-held" }, "release");
    },
  },
  {
    name: "of many that take over a lapsed claim exactly one wins",
    why: "All repeats of a crashed request arrive together when it lapses.",
    async run({ connections, lapse }) {
      const stores = await connections(4);
      const request = claimRequest({ leaseMs: SHORT_MS });
      await stores[0]?.claim(request);
      await lapse();
      const answers = await Promise.all(
        Array.from({ length: CONTENDERS }, (_, index) =>
          stores[index % stores.length]?.claim(repeatOf(request, { leaseMs: 30_000 })),
        ),
      );
      const won = answers.filter((answer) => answer?.kind === "claimed");
      equal(won, [{ kind: "claimed", attempt: 2, takeover: true, compared: true }], "the winners");
    },
  },
  {
    name: "a takeover and a late completion exclude each other",
    why: "Read first, write later: the work would run again although its result is stored.",
    async run({ connections, lapse, raceRounds }) {
      const [one, other] = await connections(2);
      ok(one && other, "two handles");
      const formers = Array.from({ length: raceRounds }, () => claimRequest({ leaseMs: SHORT_MS }));
      await Promise.all(formers.map((former) => one.claim(former)));
      await lapse();
      for (const [round, former] of formers.entries()) {
        const late = () => one.complete(completion(former, "the first"));
        const repeat = () => other.claim(repeatOf(former));
        const [completed, claimed] =
          round % 2 === 0
            ? await Promise.all([late(), repeat()])
            : (await Promise.all([repeat(), late()])).toReversed();
        const pair = `${completed?.kind}, ${claimed?.kind}`;
        ok(pair === "completed, completed" || pair === "replaced, claimed", `round ${round}: ${pair}`);
      }
    },
  },
  {
    name: "a claim that is gone is told from one that was replaced",
    why: "Whoever lost only its record may make it again; whoever lost its claim must stop.",
    async run({ store }) {
      const request = claimRequest();
      equal(await store.extend({ ...request, leaseMs: 1_000 }), { kind: "gone" }, "extend of no record");
      equal(await store.release(releaseOf(request)), { kind: "not-held" }, "release of no record");
      has(await store.claim(request), { kind: "claimed", attempt: 1 }, "claimed again with the same token");
    },
  },
  {
    name: "a lapse deletes nothing",
    why: "A retry with another body after a crash would run, and the attempt would not count.",
    async run({ store, lapse }) {
      const request = claimRequest({ leaseMs: SHORT_MS, guarantee: "exactly-once", label: "order-17" });
      await store.claim(request);
      await lapse();
      const info = await store.find(request.key);
      const { key, scopeId, operation, label, fingerprint, guarantee } = request;
      const kept = { key, scopeId, operation, label, fingerprint, guarantee, state: "claimed", attempt: 1 };
      has(info, { ...kept, lapsed: true }, "the lapsed record");
      ok((info?.leaseRemainingMs ?? 1) <= 0, `leaseRemainingMs: ${info?.leaseRemainingMs}`);
      equal(await store.status([key]), [{ state: "lapsed", holder: request.token }], "its status");
    },
  },
  {
    name: "an unknown token is nobody",
    why: "A guessed or foreign token would end somebody's claim.",
    async run({ store }) {
      const request = claimRequest();
      await store.claim(request);
      const stranger = { ...request, token: newToken() };
      equal(await store.extend(stranger), { kind: "replaced" }, "extend");
      equal(await store.complete(completion(stranger)), { kind: "replaced", by: undefined }, "complete");
      equal(await store.release(releaseOf(stranger)), { kind: "not-held" }, "release");
      equal(await store.extend(request), { kind: "extended" }, "the holder afterwards");
    },
  },
]);
