/**
 * @module
 * The contract of completing: the first outcome stays, byte for byte, whatever comes late or twice.
 */
import type { StoredOutcome } from "../../core/record.js";
import type { ClaimRequest, Store } from "../../core/store.js";
import { bytesOf, claimRequest, identityOf, repeatOf } from "../requests.js";
import { equal, has, kind, ok } from "./check.js";
import { group, SHORT_MS } from "./context.js";
import { completion, makeUnknown, outcome, releaseOf } from "./scenes.js";

const MIB = 1024 * 1024;

export const completing = group("completing", [
  {
    name: "a completed key answers with its outcome and who completed it",
    why: "A repeat would run again, or get no answer.",
    async run({ store }) {
      const request = claimRequest();
      await store.claim(request);
      equal(await store.complete(completion(request)), { kind: "completed", how: "stored" }, "complete");
      equal(
        await store.claim(repeatOf(request)),
        { kind: "completed", outcome: outcome("paid 10"), completedBy: request.token, compared: true },
        "a repeat",
      );
      has(await store.claim(request), { kind: "completed", completedBy: request.token }, "the same token");
      equal(await store.status([request.key]), [{ state: "completed", holder: request.token }], "status");
    },
  },
  {
    name: "the first outcome stays",
    why: "Two callers of one key would hold different receipts.",
    async run({ store }) {
      const request = claimRequest();
      await store.claim(request);
      await store.complete(completion(request, "first"));
      equal(
        await store.complete(completion(request, "second")),
        { kind: "completed", how: "already" },
        "completed again by its token",
      );
      const answer = kind(await store.claim(repeatOf(request)), "completed", "a repeat");
      equal(answer.outcome, outcome("first"), "its outcome");
    },
  },
  {
    name: "a completion asked many times at once is stored once",
    why: "A completion that timed out is repeated while the first may still land.",
    async run({ connections }) {
      const stores = await connections(4);
      const request = claimRequest();
      await stores[0]?.claim(request);
      const answers = await Promise.all(
        [...stores, ...stores].map((store, index) => store.complete(completion(request, `answer ${index}`))),
      );
      const hows = answers.map((answer) => kind(answer, "completed", "each").how).sort();
      equal(hows, [...Array(hows.length - 1).fill("already"), "stored"], "how each was completed");
    },
  },
  {
    name: "a completion whose record is gone makes it again",
    why: "Retention, eviction or a failover took it while the work ran, and the next repeat would run again.",
    async run({ store }) {
      const request = claimRequest();
      equal(await store.complete(completion(request)), { kind: "completed", how: "recreated" }, "complete");
      has(
        await store.claim(repeatOf(request)),
        { kind: "completed", outcome: outcome("paid 10"), completedBy: request.token },
        "a repeat",
      );
      const { scopeId, operation, fingerprint, guarantee } = request;
      const info = await store.find(request.key);
      has(info, { scopeId, operation, fingerprint, guarantee, attempt: 1 }, "the record");
    },
  },
  {
    name: "a token whose record was purged never matches a new claim",
    why: "The old holder would complete or free the claim of a stranger.",
    async run({ store, lapse, sleep }) {
      const former = claimRequest({ leaseMs: SHORT_MS, retentionMs: SHORT_MS });
      await store.claim(former);
      await lapse();
      await sleep(SHORT_MS);
      await store.purge(100);
      const present = repeatOf(former, { leaseMs: 30_000, retentionMs: 86_400_000 });
      equal(
        await store.claim(present),
        { kind: "claimed", attempt: 1, takeover: false, compared: true },
        "the next claim",
      );
      equal(await store.complete(completion(former)), { kind: "replaced", by: undefined }, "complete");
      equal(await store.extend(former), { kind: "replaced" }, "extend");
      equal(await store.release(releaseOf(former)), { kind: "not-held" }, "release");
      equal(await store.extend(present), { kind: "extended" }, "the present holder");
    },
  },
  {
    name: "a completed key takes no other end",
    why: "Done would become undone.",
    async run({ store }) {
      const request = claimRequest();
      await store.claim(request);
      await store.complete(completion(request));
      equal(await store.extend(request), { kind: "completed" }, "extend by its token");
      equal(await store.release(releaseOf(request)), { kind: "completed" }, "release by its token");
      const mark = { ...identityOf(request), attempt: 1, code: undefined };
      equal(await store.markUnknown(mark), { kind: "completed" }, "markUnknown by its token");
      const other = repeatOf(request);
      equal(await store.extend(other), { kind: "replaced" }, "extend by another");
      equal(await store.release(releaseOf(other)), { kind: "not-held" }, "release by another");
      equal(
        await store.complete(completion(other, "other")),
        { kind: "replaced", by: { token: request.token, outcome: outcome("paid 10") } },
        "complete by another",
      );
      kind(await store.claim(repeatOf(request)), "completed", "a repeat at the end");
    },
  },
  {
    name: "the truth about an unknown outcome is taken late",
    why: "Work that was given up would stay unknown although it said how it ended.",
    async run(context) {
      const { store } = context;
      const request = await makeUnknown(context);
      equal(await store.complete(completion(request)), { kind: "completed", how: "late" }, "complete");
      has(
        await store.claim(repeatOf(request)),
        { kind: "completed", completedBy: request.token },
        "a repeat",
      );
    },
  },
  {
    name: "a tombstone says that the work is done",
    why: "A result too large to keep would run again.",
    async run({ store }) {
      const tombstone: StoredOutcome = { head: "201 /payments/17", body: undefined };
      const request = await completed(store, tombstone);
      const answer = kind(await store.claim(repeatOf(request)), "completed", "a repeat");
      equal(answer.outcome, tombstone, "its outcome");
      has(await store.find(request.key), { tombstone: true, resultBytes: 0 }, "the record");
    },
  },
  {
    name: "an empty body is a body",
    why: "A 204 is an answer, not the loss of one.",
    async run({ store }) {
      const empty: StoredOutcome = { head: "204", body: new Uint8Array(0) };
      const request = await completed(store, empty);
      const answer = kind(await store.claim(repeatOf(request)), "completed", "a repeat");
      equal(answer.outcome, empty, "its outcome");
      has(await store.find(request.key), { tombstone: false, resultBytes: 0 }, "the record");
    },
  },
  {
    name: "every byte comes back as it was",
    why: "A column of text mangles images, archives and protobuf.",
    async run({ store }) {
      const every = Uint8Array.from({ length: 1_024 }, (_, index) => index % 256);
      const large = Uint8Array.from({ length: MIB }, (_, index) => (index * 31 + (index >> 8)) % 256);
      // A view into a larger buffer, as sockets hand them out.
      const view = every.subarray(17, 300);
      for (const body of [every, large, view, Uint8Array.of(0), Uint8Array.of(0xff, 0xfe, 0xfd)]) {
        const request = await completed(store, { head: "200", body });
        const answer = kind(await store.claim(repeatOf(request)), "completed", "a repeat");
        equal(answer.outcome.body, body, `a body of ${body.byteLength} bytes`);
        equal((await store.find(request.key))?.resultBytes, body.byteLength, "resultBytes");
      }
    },
  },
  {
    name: "every text comes back as it was",
    why: "Names, labels and heads hold whatever alphabet and quotes their authors use.",
    async run({ store }) {
      const odd = `"quotes" 'single' \\ back\nline\ttab 日本語 ñ é 🏦 %s $1 -- ; \u{10ffff}`;
      const request = claimRequest({ operation: `POST ${odd}`, label: odd });
      await store.claim(request);
      await store.complete({
        ...completion(request),
        outcome: { head: odd.repeat(200), body: bytesOf(odd) },
      });
      const answer = kind(await store.claim(repeatOf(request)), "completed", "a repeat");
      equal(answer.outcome, { head: odd.repeat(200), body: bytesOf(odd) }, "its outcome");
      has(await store.find(request.key), { operation: `POST ${odd}`, label: odd }, "the record");
    },
  },
  {
    name: "whoever made or was given a buffer may change it",
    why: "A pool that reuses its buffers would rewrite stored answers.",
    async run({ store }) {
      const given = bytesOf("paid 10");
      const request = await completed(store, { head: "200", body: given });
      given.fill(0);
      const first = kind(await store.claim(repeatOf(request)), "completed", "a repeat").outcome.body;
      equal(first, bytesOf("paid 10"), "after its maker changed it");
      ok(first, "a body");
      first.fill(1);
      const second = kind(await store.claim(repeatOf(request)), "completed", "another repeat").outcome.body;
      equal(second, bytesOf("paid 10"), "after a reader changed its own");
    },
  },
]);

async function completed(store: Store, answer: StoredOutcome): Promise<ClaimRequest> {
  const request = claimRequest();
  await store.claim(request);
  equal(
    await store.complete({ ...completion(request), outcome: answer }),
    { kind: "completed", how: "stored" },
    "complete",
  );
  return request;
}
