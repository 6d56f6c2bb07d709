/**
 * @module
 * `guard`: pins a claim inside a transaction of the work's own, so that what it writes there cannot be committed beside a
 * successor.
 *
 * It fences, and is no more: rows and completion are two commits. Invariant: it never ends the claim, nor hinders its renewal.
 */
import type { Calls } from "./calls.js";
import { OncekeyError } from "./errors.js";
import type { ClaimRequest, Store } from "./store.js";

export interface Pinning {
  readonly store: Store;
  readonly calls: Calls;
}

/** The wait for whoever is just ending the claim has to end before the whole call does. */
const WAIT_PART = 0.5;

/**
 * Whether the claim is held, and stays so until the transaction ends.
 *
 * @throws OncekeyError `GUARANTEE_UNSUPPORTED` if the store's records do not lie where a transaction of the work's can be;
 * `RETRY_TRANSACTION`, `TRANSACTION_ABORTED`, `STORE_UNAVAILABLE`.
 */
export async function pinClaim(
  { store, calls }: Pinning,
  { key, token, operation }: ClaimRequest,
  storeTimeoutMs: number,
  transaction: unknown,
): Promise<boolean> {
  const pin = store.pin?.bind(store);
  if (pin === undefined) {
    throw new OncekeyError(
      "GUARANTEE_UNSUPPORTED",
      `The store ${store.name} keeps its records where no transaction of yours can reach them, so it cannot guard one.`,
    );
  }
  const waitMs = storeTimeoutMs * WAIT_PART;
  // The types of the instance say what a transaction is; the engine hands on what it was given.
  const ask = () => pin(transaction as never, { key, token, waitMs });
  const { kind } = await calls.bounded("pin", operation, storeTimeoutMs, ask);
  return kind === "pinned";
}
