/**
 * @module
 * The contract of releasing and of counting attempts: a key is free again only when it is known that nothing
 * happened, and a start that was made counts.
 */
import { claimRequest, fingerprint, repeatOf } from "../requests.js";
import { equal, has, kind } from "./check.js";
import { group, SHORT_MS } from "./context.js";
import { completion, makeUnknown, releaseOf } from "./scenes.js";

const FIRST = { kind: "claimed", attempt: 1, takeover: false, compared: true };

export const releasing = group("releasing", [
  {
    name: "a release frees the key and leaves nothing",
    why: "A failed attempt would block its retry.",
    async run({ store }) {
      const request = claimRequest();
      await store.claim(request);
      equal(await store.release(releaseOf(request)), { kind: "released" }, "release");
      equal(await store.find(request.key), undefined, "the record");
      equal(await store.status([request.key]), [{ state: "absent", holder: undefined }], "status");
      const other = repeatOf(request, { fingerprint: fingerprint("corrected") });
      equal(await store.claim(other), FIRST, "the next claim, of a corrected request");
    },
  },
  {
    name: "a release asked again finds nothing to release",
    why: "An abandoned claim is released again and again; the second must not free the next holder.",
    async run({ store }) {
      const request = claimRequest();
      await store.claim(request);
      await store.release(releaseOf(request));
      equal(await store.release(releaseOf(request)), { kind: "not-held" }, "asked again");
      const next = repeatOf(request);
      await store.claim(next);
      equal(await store.release(releaseOf(request)), { kind: "not-held" }, "after somebody else claimed");
      equal(await store.extend(next), { kind: "extended" }, "the next holder");
    },
  },
  {
    name: "with attempts kept, the next claim counts on and forgets the request",
    why: "maxAttempts would never be reached, or a corrected request be refused.",
    async run({ store }) {
      const request = claimRequest({ maxAttempts: 5 });
      await store.claim(request);
      equal(await store.release(releaseOf(request, { keepAttempts: true })), { kind: "released" }, "release");
      has(
        await store.find(request.key),
        { state: "released", attempt: 1, lastCode: "E_DECLINED" },
        "the record",
      );
      equal(await store.status([request.key]), [{ state: "released", holder: request.token }], "status");
      equal(
        await store.release(releaseOf(request, { keepAttempts: true })),
        { kind: "not-held" },
        "released again",
      );
      equal(
        await store.complete(completion(request)),
        { kind: "replaced", by: undefined },
        "completed after all, once it was released",
      );
      equal(await store.extend(repeatOf(request)), { kind: "gone" }, "extend by another");
      const other = repeatOf(request, { fingerprint: fingerprint("corrected") });
      equal(
        await store.claim(other),
        { kind: "claimed", attempt: 2, takeover: false, compared: true },
        "the next claim, of a corrected request",
      );
    },
  },
  {
    name: "a key whose attempts are used up is not started again",
    why: "maxAttempts is checked by whoever reads first, and two readers start the last attempt twice.",
    async run({ store, lapse }) {
      const request = claimRequest({ maxAttempts: 2, retentionMs: 30_000 });
      for (const attempt of [1, 2]) {
        const one = repeatOf(request);
        has(await store.claim(one), { kind: "claimed", attempt }, `attempt ${attempt}`);
        await store.release(releaseOf(one, { keepAttempts: true, code: `E_${attempt}` }));
      }
      const exhausted = { kind: "exhausted", attempts: 2, lastCode: "E_2" };
      equal(await store.claim(repeatOf(request)), exhausted, "the third");
      has(
        await store.claim(repeatOf(request, { maxAttempts: 3 })),
        { kind: "claimed", attempt: 3 },
        "if raised",
      );

      const lapsing = claimRequest({ maxAttempts: 1, leaseMs: SHORT_MS });
      await store.claim(lapsing);
      await lapse();
      has(await store.claim(repeatOf(lapsing)), { kind: "exhausted", attempts: 1 }, "a takeover counts too");
    },
  },
  {
    name: "the count of attempts ends with its retention",
    why: "A key would be refused for ever.",
    async run({ store, lapse }) {
      const request = claimRequest({ maxAttempts: 1, retentionMs: SHORT_MS });
      await store.claim(request);
      await store.release(releaseOf(request, { keepAttempts: true }));
      kind(await store.claim(repeatOf(request)), "exhausted", "while it counts");
      await lapse();
      equal(await store.claim(repeatOf(request)), FIRST, "later");
    },
  },
  {
    name: "a claim that was never started does not count",
    why: "A caller that timed out while claiming would use up attempts without ever running.",
    async run({ store }) {
      const request = claimRequest({ maxAttempts: 2 });
      const givenBack = { started: false, keepAttempts: true, code: undefined };
      await store.claim(request);
      equal(await store.release(releaseOf(request, givenBack)), { kind: "released" }, "the first");
      equal(await store.find(request.key), undefined, "the record: nothing ever started");

      const failed = repeatOf(request);
      await store.claim(failed);
      await store.release(releaseOf(failed, { keepAttempts: true, code: "E_1" }));
      const unstarted = repeatOf(request);
      has(await store.claim(unstarted), { attempt: 2 }, "the second claim");
      await store.release(releaseOf(unstarted, givenBack));
      has(await store.find(request.key), { state: "released", attempt: 1, lastCode: "E_1" }, "the record");
      has(await store.claim(repeatOf(request)), { kind: "claimed", attempt: 2 }, "the next claim");
    },
  },
  {
    name: "a takeover that was never started leaves the lapsed claim on record",
    why: "The earlier start, whose end nobody knows, would be forgotten: no mismatch, attempt 1 again.",
    async run({ store, lapse }) {
      const crashed = claimRequest({ leaseMs: SHORT_MS });
      await store.claim(crashed);
      await lapse();
      const unstarted = repeatOf(crashed, { leaseMs: 30_000 });
      has(await store.claim(unstarted), { attempt: 2, takeover: true }, "the takeover");
      const giveBack = releaseOf(unstarted, { started: false });
      equal(await store.release(giveBack), { kind: "released" }, "given back");
      equal(await store.release(giveBack), { kind: "not-held" }, "given back again");
      has(await store.find(crashed.key), { state: "claimed", lapsed: true, attempt: 1 }, "the record");
      kind(
        await store.claim(repeatOf(crashed, { fingerprint: fingerprint("other") })),
        "mismatch",
        "another",
      );
      has(await store.claim(repeatOf(crashed)), { kind: "claimed", attempt: 2, takeover: true }, "the next");
    },
  },
  {
    name: "who made an outcome unknown may still say that nothing happened",
    why: "A key would wait for an operator although its work knows better.",
    async run(context) {
      const { store } = context;
      const request = await makeUnknown(context);
      equal(await store.release(releaseOf(repeatOf(request))), { kind: "not-held" }, "release by another");
      equal(await store.release(releaseOf(request)), { kind: "released" }, "release by its maker");
      equal(await store.claim(repeatOf(request)), FIRST, "the next claim");
    },
  },
]);
