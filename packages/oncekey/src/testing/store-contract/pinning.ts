/**
 * @module
 * The contract of pinning: a claim that is pinned in a transaction of the application's stays its holder's until that ends.
 */
import type { ClaimRequest, PinOutcome, Store } from "../../core/store.js";
import { claimRequest, newToken, repeatOf } from "../requests.js";
import { equal, has, kind, ok } from "./check.js";
import { type ContractCaller, group, SHORT_MS, type StoreContext } from "./context.js";
import { completion, releaseOf, versionIn } from "./scenes.js";

const WAIT_MS = 1_000;

export const pinning = group("pinning", [
  {
    name: "a pinned claim is not taken over, though its lease has lapsed, until the transaction ends",
    why: "The successor would run beside rows that are about to be committed.",
    async run(context) {
      const { store, lapse } = context;
      const request = claimRequest({ leaseMs: SHORT_MS });
      await store.claim(request);
      const caller = await pinned(context, request);
      await lapse();
      const successor = repeatOf(request);
      has(await store.claim(successor), { kind: "in-flight", holder: request.token }, "a takeover");
      await caller.commit();
      has(await store.claim(successor), { kind: "claimed", attempt: 2, takeover: true }, "after the end");
    },
  },
  {
    name: "a pin does not hinder the renewals and the completion of its own holder",
    why: "The heartbeat would wait for the work's own transaction, and the claim lapse meanwhile.",
    async run(context) {
      const { store } = context;
      const request = claimRequest();
      await store.claim(request);
      const caller = await pinned(context, request);
      equal(await store.extend(request), { kind: "extended" }, "a renewal");
      await caller.commit();
      const other = claimRequest();
      await store.claim(other);
      await pinned(context, other);
      has(await store.complete(completion(other)), { kind: "completed" }, "its completion");
    },
  },
  {
    name: "what is not held cannot be pinned",
    why: "A former holder's rows would be committed beside its successor's.",
    async run(context) {
      const { store, lapse } = context;
      const replaced = claimRequest({ leaseMs: SHORT_MS });
      await store.claim(replaced);
      await lapse();
      await store.claim(repeatOf(replaced));
      equal((await pin(context, replaced)).outcome, { kind: "not-held" }, "a claim that was taken over");
      const done = claimRequest();
      await store.claim(done);
      await store.complete(completion(done));
      equal((await pin(context, done)).outcome, { kind: "not-held" }, "one that is completed");
      const released = claimRequest();
      await store.claim(released);
      await store.release(releaseOf(released));
      equal((await pin(context, released)).outcome, { kind: "not-held" }, "one that was released");
      equal((await pin(context, claimRequest())).outcome, { kind: "not-held" }, "one that never was");
    },
  },
  {
    name: "a lapsed claim that nobody took over can be pinned",
    why: "A lapse is a fact about time: whoever is late and alone may still finish.",
    async run(context) {
      const request = claimRequest({ leaseMs: SHORT_MS });
      await context.store.claim(request);
      await context.lapse();
      await pinned(context, request);
    },
  },
  {
    name: "a pinned claim is live to an operator, though its lease has lapsed",
    why: "Somebody would free the key at the moment in which the rows are committed.",
    async run(context) {
      const { store, lapse } = context;
      const request = claimRequest({ leaseMs: SHORT_MS });
      await store.claim(request);
      const caller = await pinned(context, request);
      await lapse();
      const version = await versionIn(context, request);
      const verdict = { kind: "forgotten" } as const;
      const forget = { key: request.key, version, token: newToken(), verdict, evenIfLive: false };
      kind(await store.resolve(forget), "live", "an operator's verdict");
      await caller.rollback();
      kind(await store.resolve(forget), "resolved", "after the end");
    },
  },
]);

async function pin(
  { store, beginCaller }: StoreContext,
  { key, token }: ClaimRequest,
): Promise<{ readonly caller: ContractCaller<never>; readonly outcome: PinOutcome }> {
  const pinClaim: Store["pin"] = store.pin?.bind(store);
  ok(pinClaim, "the store can pin no claim");
  const caller = await beginCaller();
  return { caller, outcome: await pinClaim(caller.transaction, { key, token, waitMs: WAIT_MS }) };
}

async function pinned(context: StoreContext, request: ClaimRequest): Promise<ContractCaller<never>> {
  const { caller, outcome } = await pin(context, request);
  equal(outcome, { kind: "pinned" }, "the pin");
  return caller;
}
