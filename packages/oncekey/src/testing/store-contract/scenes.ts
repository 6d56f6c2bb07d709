/**
 * @module
 * Steps that many cases share: completing, and bringing a record into each of its states.
 */
import type { RecordState, StoredOutcome } from "../../core/record.js";
import type { ClaimRequest, CompleteRequest, ReleaseRequest } from "../../core/store.js";
import { bytesOf, claimRequest, identityOf, newToken } from "../requests.js";
import { kind } from "./check.js";
import { SHORT_MS, type StoreContext } from "./context.js";

/** An answer whose body says `text`. */
export function outcome(text: string): StoredOutcome {
  return { head: `head of ${text}`, body: bytesOf(text) };
}

/** The completion of a claim, as its work ends. */
export function completion(request: ClaimRequest, text = "paid 10", attempt = 1): CompleteRequest {
  return { ...identityOf(request), attempt, outcome: outcome(text) };
}

/** The release of a claim, as its work fails. */
export function releaseOf({ key, token }: ClaimRequest, parts: Partial<ReleaseRequest> = {}): ReleaseRequest {
  return { key, token, started: true, keepAttempts: false, code: "E_DECLINED", ...parts };
}

export interface Scene {
  readonly state: RecordState;
  readonly request: ClaimRequest;
}

/** Claims and declares unknown; the request is that of the claim. */
export async function makeUnknown(
  { store }: StoreContext,
  parts: Partial<ClaimRequest> = {},
): Promise<ClaimRequest> {
  const request = claimRequest({ guarantee: "at-most-once", onLapse: "hold", ...parts });
  kind(await store.claim(request), "claimed", "the claim");
  const mark = { ...identityOf(request), attempt: 1, code: "E_TIMEOUT" };
  kind(await store.markUnknown(mark), "unknown", "declared unknown");
  return request;
}

/** The version of a record, which has to be there. */
export async function versionIn({ store }: StoreContext, { key }: ClaimRequest) {
  const info = await store.find(key);
  if (info === undefined) throw new Error("There is no record");
  return info.version;
}

/** Runs `check` on a record in each state that has a fingerprint, lapsed and reconciling and tombstone included. */
export async function inEveryState(
  context: StoreContext,
  check: (scene: Scene) => Promise<void>,
): Promise<void> {
  const { store, lapse } = context;
  const live = claimRequest();
  await store.claim(live);
  await check({ state: "claimed", request: live });

  const lapsed = claimRequest({ leaseMs: SHORT_MS });
  await store.claim(lapsed);
  await lapse();
  await check({ state: "claimed", request: lapsed });

  await check({ state: "unknown", request: await makeUnknown(context) });

  const reconciled = await makeUnknown(context);
  const reconciler = { key: reconciled.key, madeBy: reconciled.token, token: newToken(), leaseMs: 30_000 };
  kind(await store.reconcile(reconciler), "reconciling", "the reconciler");
  await check({ state: "unknown", request: reconciled });

  const completed = claimRequest();
  await store.claim(completed);
  await store.complete(completion(completed));
  await check({ state: "completed", request: completed });

  const tombstone = claimRequest();
  await store.claim(tombstone);
  await store.complete({ ...completion(tombstone), outcome: { head: "201", body: undefined } });
  await check({ state: "completed", request: tombstone });
}
