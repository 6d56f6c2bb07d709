/**
 * @module
 * One call, as its family (functions, HTTP, messages) puts it to the engine, and what becomes of it.
 *
 * Invariant: the engine never looks into values or outcomes; encoding, decoding and rendering are left to the family.
 */
import type { Awaitable } from "./awaitable.js";
import type { Fingerprint } from "./fingerprint.js";
import type { Identity } from "./key.js";
import type { ResolvedPolicy } from "./policy.js";
import type { StoredOutcome } from "./record.js";
import type { Begun } from "./work.js";

/** One call of a family: what is asked, under which policy, and the work behind it. */
export interface Call<E> {
  readonly identity: Identity;
  readonly operation: string;
  readonly label: string | undefined;
  readonly fingerprint: Fingerprint;
  readonly policy: ResolvedPolicy;
  /** The client: when it leaves, its wait ends; the work goes on. Asked only for a call that has to wait. */
  readonly signal: () => AbortSignal | undefined;
  /** What the family keeps the work on (a request); `undefined`: the work is followed through its promises. */
  readonly carrier: unknown;
  /** A shorter or longer wait than the policy's, where the client may ask for one. */
  readonly waitMs: number | undefined;
  /** How often the work may be run again because the database refused to commit it. */
  readonly commitRepeats: number;
  readonly run: (begun: Begun) => Awaitable<Ended<E>>;
  /** A part of work that runs already: it begins although the process closes, since the work is let finish. */
  readonly part?: true | undefined;
  /** Stores what a reconciler or an operator says the result was. */
  readonly encodeDone: (result: unknown) => StoredOutcome;
}

/** How the work ended, as its family sees it. */
export type Ended<E> =
  | {
      readonly kind: "kept";
      readonly value: E;
      readonly outcome: StoredOutcome;
      /** Why the result is not in it, where it could not be kept. Never a part of the result. */
      readonly notKept: string | undefined;
      /** Under exactly-once: keep the rows too, or the record alone. */
      readonly commit: "everything" | "record";
    }
  | {
      readonly kind: "failed";
      readonly value: E;
      readonly code: string | undefined;
      /** The work itself says that nothing happened. */
      readonly performed: "maybe" | "no";
    };

/** What became of a call. */
export type Performed<E> =
  /** It ran here. `pending`: its completion is still being tried. */
  | {
      readonly kind: "executed";
      readonly value: E;
      readonly attempt: number;
      readonly ending: "kept" | "pending" | "released" | "unknown";
    }
  /** It ran here, and another run's result is on record: who has not answered yet answers with that. */
  | {
      readonly kind: "superseded";
      readonly value: E;
      readonly attempt: number;
      readonly outcome: StoredOutcome;
    }
  /** It ran here without a claim, because the store did not answer. */
  | { readonly kind: "unprotected"; readonly value: E }
  | { readonly kind: "replayed"; readonly outcome: StoredOutcome; readonly waitedMs: number };
