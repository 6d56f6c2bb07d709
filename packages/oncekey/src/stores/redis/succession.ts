/**
 * @module
 * Noticing that other servers hold the records than before: restarted, or a replica promoted in a failover.
 *
 * Such a server may lack the last claims and completions of its predecessor. For one lease after the change a claim under
 * at-most-once is therefore not won by the mere absence of a record: until then every holder that still lives has renewed, and
 * so made its record again. Invariants: servers are told apart by their run ids, never by their addresses; from the loss of
 * a connection until its successor has said who it is, such claims wait for that. Other guarantees go on: for them running
 * again is no broken promise.
 */
import { OncekeyError } from "../../core/errors.js";
import type { ClaimToken, StoredRecord } from "../../core/record.js";
import type { ClaimRequest } from "../../core/store.js";

export interface Succession {
  /** Whether `admit` has to be asked before this claim. */
  concerns(request: ClaimRequest): boolean;
  /**
   * Lets a claim pass, or refuses one that only a lost record would make possible.
   *
   * @throws OncekeyError `STORE_UNAVAILABLE` with the time until it can be decided.
   */
  admit(
    request: ClaimRequest,
    read: () => Promise<{ readonly record: StoredRecord | undefined }>,
  ): Promise<void>;
  /** A holder has found its record gone: it may make it again at any time. */
  gone(token: ClaimToken): void;
  /** A connection was lost, and nobody knows yet who will answer on the next. */
  lost(): void;
  /** Who holds the records now, by run id. An id that cannot be read tells nothing. */
  seen(runIds: readonly (string | undefined)[]): "first" | "same" | "replaced";
}

/** Holders that were told that their record is gone; more of them wait like everybody else. */
const MAX_GONE = 10_000;

/** @param look asks the servers who they are, which `seen` is then told. */
export function createSuccession(monotonicMs: () => number, look: () => Promise<void>): Succession {
  let known: ReadonlySet<string> | undefined;
  let replacedAtMs = Number.NEGATIVE_INFINITY;
  let unsure = false;
  const survivors = new Set<ClaimToken>();

  const heldBackMs = (leaseMs: number): number => replacedAtMs + leaseMs - monotonicMs();

  return {
    concerns: ({ guarantee, leaseMs }) => guarantee === "at-most-once" && (unsure || heldBackMs(leaseMs) > 0),
    async admit({ token, leaseMs }, read) {
      if (unsure) await look();
      if (survivors.has(token)) return;
      const waitMs = unsure ? leaseMs : heldBackMs(leaseMs);
      if (waitMs <= 0) return;
      const { record } = await read();
      if (record === undefined) throw heldBack(Math.ceil(waitMs));
    },
    gone(token) {
      if (survivors.size < MAX_GONE && replacedAtMs !== Number.NEGATIVE_INFINITY) survivors.add(token);
    },
    lost() {
      // Before the first look there is nothing that could have been replaced.
      if (known !== undefined) unsure = true;
    },
    seen(runIds) {
      const ids = new Set(runIds.filter((id) => id !== undefined));
      if (ids.size === 0) return known === undefined ? "first" : "same";
      unsure = false;
      if (known === undefined) {
        known = ids;
        return "first";
      }
      const before = known;
      const fresh = [...ids].some((id) => !before.has(id));
      const missing = [...before].some((id) => !ids.has(id));
      // One that is away has not been replaced yet, and one that has come has replaced nobody.
      known = fresh && missing ? ids : new Set([...before, ...ids]);
      if (!(fresh && missing)) return "same";
      replacedAtMs = monotonicMs();
      survivors.clear();
      return "replaced";
    },
  };
}

function heldBack(retryAfterMs: number): OncekeyError<"STORE_UNAVAILABLE"> {
  const message =
    "Another server holds the records than before, and may have lost the last of them. Under at-most-once a key " +
    "that it has never seen is not started until whoever may hold it has had time to renew.";
  return new OncekeyError("STORE_UNAVAILABLE", message, { retryAfterMs });
}
