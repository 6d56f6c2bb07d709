/**
 * @module
 * The type of a store that has to ask somebody else.
 *
 * Invariant: it is the port, narrowed: where a store in the process may answer at once, such a store gives a promise, which
 * whoever uses it directly can rely on.
 */
import type {
  ClaimOutcome,
  ClaimRequest,
  CompleteOutcome,
  CompleteRequest,
  ExtendOutcome,
  ExtendRequest,
  ReleaseOutcome,
  ReleaseRequest,
  Store,
} from "../core/store.js";

/** A `Store` whose calls all answer with a promise. */
export interface RemoteStore<Tx = unknown, Held = never> extends Store<Tx, Held> {
  claim(request: ClaimRequest): Promise<ClaimOutcome>;
  extend(request: ExtendRequest): Promise<ExtendOutcome>;
  complete(request: CompleteRequest): Promise<CompleteOutcome>;
  release(request: ReleaseRequest): Promise<ReleaseOutcome>;
}
