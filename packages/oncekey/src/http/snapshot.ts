/**
 * @module
 * A response as stored: status, headers in order, and the exact bytes of the body.
 *
 * Invariant: what `decodeSnapshot` gives is what `encodeSnapshot` was given, or it throws
 * `RECORD_UNREADABLE`. Both check the same things, and the head carries the body's length and a checksum of
 * each, so that a damaged record is noticed instead of answered. Which headers are kept is left to
 * `kept-headers.ts`, sending it to the adapters.
 */
import { crc32 } from "#platform";
import { quote } from "../core/canonical-names.js";
import { OncekeyError } from "../core/errors.js";
import type { StoredOutcome } from "../core/record.js";
import type { HeaderLine } from "./answer.js";

/** In order, a name once for each of its lines. */
export type HeaderList = readonly HeaderLine[];

export interface Snapshot {
  readonly status: number;
  readonly headers: HeaderList;
  /** `undefined`: a tombstone, the body was not retained. An empty body is a body. */
  readonly body: Uint8Array | undefined;
}

/** What a tombstone keeps: where the result is found, now that it is not told (lower case). */
const TOMBSTONE_HEADERS: ReadonlySet<string> = new Set(["location", "content-location", "etag"]);

/** The snapshot without its body, and without the headers that speak of it. */
export function tombstoneOf({ status, headers }: Snapshot): Snapshot {
  return {
    status,
    headers: headers.filter(([name]) => TOMBSTONE_HEADERS.has(name.toLowerCase())),
    body: undefined,
  };
}

/**
 * The head is `http/1`, two checksums, then a JSON list: status, length of the body, names and values. The
 * body is stored as it is, so a store may drop it and leave a tombstone without understanding the head.
 *
 * @throws TypeError if the snapshot is none that could be read back (a status that is not final, a line
 * break in a header). The body is not copied.
 */
export function encodeSnapshot(snapshot: Snapshot): StoredOutcome {
  const flaw = flawOf(snapshot);
  if (flaw !== undefined) throw new TypeError(`This response cannot be stored: ${flaw}`);
  const { body } = snapshot;
  const facts = factsOf(snapshot);
  const bodySum = body === undefined ? 0 : crc32(body);
  // Joined it is one text in memory. A template makes a tree of its parts, which a store in this process would keep.
  return { head: ["http/1", crc32(facts), bodySum, facts].join(" "), body };
}

/** What `JSON.stringify` makes of the list, without making the list. */
function factsOf({ status, headers, body }: Snapshot): string {
  let facts = `[${status},${body === undefined ? null : body.byteLength}`;
  for (const [name, value] of headers) facts += `,${quote(name)},${quote(value)}`;
  return `${facts}]`;
}

/** @throws OncekeyError `RECORD_UNREADABLE` if this is not, or not any more, what `encodeSnapshot` made. */
export function decodeSnapshot({ head, body }: StoredOutcome): Snapshot {
  const [, headSum, bodySum, facts] = /^http\/1 (\d+) (\d+) (\[.*\])$/s.exec(head) ?? [];
  if (facts === undefined) throw unreadable("it is no response, or of an unknown version");
  if (crc32(facts) !== Number(headSum)) throw unreadable("its head is damaged");
  const [status, length, ...fields] = JSON.parse(facts) as [number, number | null, ...string[]];
  if (body !== undefined && body.byteLength !== length) throw unreadable("its body has another length");
  if (body !== undefined && crc32(body) !== Number(bodySum)) throw unreadable("its body is damaged");
  const snapshot = { status, headers: pairsOf(fields), body };
  const flaw = flawOf(snapshot);
  if (flaw !== undefined) throw unreadable(flaw);
  // A store that was short of space may have dropped the body, and with it what the headers speak of.
  return body === undefined ? tombstoneOf(snapshot) : snapshot;
}

function pairsOf(fields: readonly string[]): HeaderList {
  const pairs: [string, string][] = [];
  for (let index = 0; index + 1 < fields.length; index += 2) {
    pairs.push([fields[index] as string, fields[index + 1] as string]);
  }
  if (pairs.length * 2 !== fields.length) throw unreadable("a header has no value");
  return pairs;
}

/** A token of RFC 9110 §5.6.2. */
const NAME = /^[\w!#$%&'*+.^`|~-]+$/;
/** What would end a header before its end (§5.5). */
const BREAK = /[\r\n\0]/;

/** Why this cannot be the head of an answer. Looked for when a snapshot is written and again when it is read. */
export function flawOf({ status, headers }: Pick<Snapshot, "status" | "headers">): string | undefined {
  if (!Number.isInteger(status) || status < 200 || status > 999) return "its status is not a final one";
  for (const [name, value] of headers) {
    if (typeof name !== "string" || !NAME.test(name)) return `${JSON.stringify(name)} is no name of a header`;
    if (typeof value !== "string" || BREAK.test(value)) return `the value of the header ${name} is not valid`;
  }
  return undefined;
}

function unreadable(why: string): OncekeyError<"RECORD_UNREADABLE"> {
  return new OncekeyError(
    "RECORD_UNREADABLE",
    `The stored response cannot be read: ${why}. The work may be done; look before it is done again.`,
  );
}
