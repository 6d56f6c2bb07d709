/**
 * @module
 * Turns a stored outcome into the answer that a repeat gets.
 *
 * Invariant: status, kept headers and bytes are those of the first answer, marked as a replay; a body that was
 * not retained is never made up.
 */
import { type Awaitable, whenDone } from "../core/awaitable.js";
import { OncekeyError } from "../core/errors.js";
import type { StoredOutcome } from "../core/record.js";
import type { HeaderLine, WholeAnswer } from "./answer.js";
import { forClient, needsDecoding } from "./content-coding.js";
import { snapshotOf } from "./done.js";
import type { Route } from "./options.js";
import type { HttpRequest } from "./port.js";
import type { Snapshot } from "./snapshot.js";

const REPLAYED: HeaderLine = ["Idempotency-Replayed", "true"];
const NOT_RETAINED: HeaderLine = ["Idempotency-Body", "not-retained"];
/** Scripts of other origins may read only what is named (Fetch §3.3.4). */
const EXPOSED: HeaderLine = [
  "Access-Control-Expose-Headers",
  "Idempotency-Replayed, Idempotency-Body, Idempotency-Degraded, Retry-After",
];
const EXPOSING: readonly HeaderLine[] = [EXPOSED];
const NOTHING_EXPOSED: readonly HeaderLine[] = [];
const NOTHING = new Uint8Array(0);

/** @throws OncekeyError `RESULT_NOT_RETAINED` where the route refuses tombstones; `RECORD_UNREADABLE`. */
export function replayOf<C>(
  route: Route<C>,
  request: HttpRequest<C>,
  outcome: StoredOutcome,
): Awaitable<WholeAnswer> {
  const snapshot = snapshotOf(outcome);
  if (snapshot.body === undefined) return tombstoneAnswer(route, request, snapshot);
  const acceptEncoding = request.lines("accept-encoding").join(", ") || undefined;
  if (!needsDecoding(snapshot, acceptEncoding)) return replayed(request, snapshot);
  const decoded = forClient(snapshot, acceptEncoding, route.policy.maxResultBytes);
  return whenDone(decoded, (readable) => replayed(request, readable));
}

function replayed<C>(request: HttpRequest<C>, { status, headers, body = NOTHING }: Snapshot): WholeAnswer {
  return { status, headers: marked(request, headers), body };
}

async function tombstoneAnswer<C>(
  { onTombstone }: Route<C>,
  request: HttpRequest<C>,
  snapshot: Snapshot,
): Promise<WholeAnswer> {
  if (onTombstone === "refuse") {
    throw new OncekeyError(
      "RESULT_NOT_RETAINED",
      "The operation is completed, but its answer was not retained.",
      { completed: true },
    );
  }
  if (onTombstone !== "status") {
    const { status, headers, body } = await onTombstone(snapshot);
    return { status, headers: marked(request, headers), body };
  }
  const headers = marked(request, [...snapshot.headers, NOT_RETAINED]);
  return { status: snapshot.status, headers, body: NOTHING };
}

function marked<C>(request: HttpRequest<C>, headers: readonly HeaderLine[]): readonly HeaderLine[] {
  return [...headers, REPLAYED, ...exposed(request)];
}

/** Names our headers to scripts of another origin, if that is who asks. */
export function exposed<C>(request: HttpRequest<C>): readonly HeaderLine[] {
  return request.lines("origin").length > 0 ? EXPOSING : NOTHING_EXPOSED;
}
