/**
 * @module
 * The contract of retention: what is kept, for how long, and what a purge may take.
 */
import { claimRequest, repeatOf } from "../requests.js";
import { equal, has, kind, ok } from "./check.js";
import { group, SHORT_MS } from "./context.js";
import { completion, makeUnknown, releaseOf } from "./scenes.js";

const FIRST = { kind: "claimed", attempt: 1, takeover: false, compared: true };

export const retaining = group("retaining", [
  {
    name: "a completed key answers for its retention and is new afterwards",
    why: "Forgotten early it runs twice; kept for ever it fills the store.",
    async run({ store, lapse }) {
      const request = claimRequest({ retentionMs: SHORT_MS });
      await store.claim(request);
      await store.complete(completion(request));
      const info = await store.find(request.key);
      ok((info?.expiresInMs ?? 0) <= SHORT_MS, `expiresInMs: ${info?.expiresInMs}`);
      kind(await store.claim(repeatOf(request)), "completed", "a repeat");
      await lapse();
      equal(await store.find(request.key), undefined, "the record, whether or not it has been purged");
      equal(await store.status([request.key]), [{ state: "absent", holder: undefined }], "status");
      equal(await store.claim(repeatOf(request)), FIRST, "a claim");
    },
  },
  {
    name: "retention counts from the completion",
    why: "Work that takes half an hour would have its answer kept for half an hour less.",
    async run({ store, sleep }) {
      const request = claimRequest({ retentionMs: 2 * SHORT_MS });
      await store.claim(request);
      await sleep(SHORT_MS);
      await store.complete(completion(request));
      await sleep(SHORT_MS + SHORT_MS / 2);
      kind(await store.claim(repeatOf(request)), "completed", "a repeat, a retention after the claim");
    },
  },
  {
    name: "a claimed record is kept for its lease and its retention",
    why: "The attempt of a crashed process would be forgotten, or never end.",
    async run({ store, lapse, sleep }) {
      const request = claimRequest({ leaseMs: SHORT_MS, retentionMs: SHORT_MS });
      await store.claim(request);
      await lapse();
      has(await store.find(request.key), { state: "claimed", lapsed: true }, "lapsed");
      equal(await store.purge(100), 0, "purged");
      await sleep(SHORT_MS);
      equal(await store.find(request.key), undefined, "after both");
      equal(await store.claim(repeatOf(request)), FIRST, "a claim");
    },
  },
  {
    name: "a purge takes what has expired, in batches as small as asked",
    why: "One statement over a million rows stops everybody.",
    async run({ store, lapse }) {
      for (let n = 0; n < 3; n++) {
        const completed = claimRequest({ retentionMs: SHORT_MS });
        await store.claim(completed);
        await store.complete(completion(completed));
        const released = claimRequest({ retentionMs: SHORT_MS, maxAttempts: 9 });
        await store.claim(released);
        await store.release(releaseOf(released, { keepAttempts: true }));
      }
      await lapse();
      const removed: number[] = [];
      for (let round = 0; round < 4; round++) removed.push(await store.purge(2));
      equal(removed, [2, 2, 2, 0], "removed by each purge");
    },
  },
  {
    name: "a purge leaves everything that has not expired",
    why: "A live claim would be free for the next caller.",
    async run(context) {
      const { store, lapse } = context;
      const live = claimRequest();
      await store.claim(live);
      const lapsed = claimRequest({ leaseMs: SHORT_MS });
      await store.claim(lapsed);
      const renewed = claimRequest({ leaseMs: SHORT_MS, retentionMs: SHORT_MS });
      await store.claim(renewed);
      equal(await store.extend({ ...renewed, leaseMs: 30_000 }), { kind: "extended" }, "renewed");
      const completed = claimRequest();
      await store.claim(completed);
      await store.complete(completion(completed));
      const unknown = await makeUnknown(context, { leaseMs: SHORT_MS, retentionMs: SHORT_MS });
      await lapse();
      await lapse();
      equal(await store.purge(1_000), 0, "removed");
      equal(
        (await store.status([live, lapsed, renewed, completed, unknown].map(({ key }) => key))).map(
          ({ state }) => state,
        ),
        ["claimed", "lapsed", "claimed", "completed", "unknown"],
        "their states",
      );
    },
  },
]);
