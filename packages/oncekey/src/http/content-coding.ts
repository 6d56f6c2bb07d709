/**
 * @module
 * What to do with a stored body that is compressed when the client of its replay cannot read that.
 *
 * Invariant: a body is replayed as it was stored, under its own `Content-Encoding`, unless the client does
 * not accept that coding; then it is decoded, within a bound, and the headers say so. A client that sends no
 * `Accept-Encoding` is given the decoded body: RFC 9110 §12.5.3 would allow any coding, but what everybody
 * reads is no coding at all.
 */
import { type ContentCoding, decompress } from "#platform";
import type { HeaderLine } from "./answer.js";
import type { HeaderList, Snapshot } from "./snapshot.js";

/**
 * The snapshot as this client can read it. It stays as it is if the client accepts its coding, if there is
 * none, or if it cannot be decoded: unknown coding, damaged, more than `maxBytes`.
 */
export async function forClient(
  snapshot: Snapshot,
  acceptEncoding: string | undefined,
  maxBytes: number,
): Promise<Snapshot> {
  if (snapshot.body === undefined || !needsDecoding(snapshot, acceptEncoding)) return snapshot;
  let { body } = snapshot;
  // RFC 9110 §8.4: listed in the order applied, so the last is undone first.
  for (const coding of codingsOf(snapshot.headers).toReversed()) {
    if (!isContentCoding(coding)) return snapshot;
    const result = await decompress(coding, body, maxBytes);
    if (result.kind !== "decompressed") return snapshot;
    body = result.bytes;
  }
  return { status: snapshot.status, headers: decodedHeaders(snapshot.headers), body };
}

/** Whether `forClient` would have to decode: lets a replay without compression skip a turn of promises. */
export function needsDecoding(snapshot: Snapshot, acceptEncoding: string | undefined): boolean {
  if (snapshot.body === undefined || !snapshot.headers.some(namesCoding)) return false;
  return codingsOf(snapshot.headers).some((coding) => !accepts(acceptEncoding, coding));
}

function namesCoding([name]: HeaderLine): boolean {
  return name.toLowerCase() === "content-encoding";
}

/** The codings of a body in the order applied, in lower case; `identity` is none (RFC 9110 §8.4.1). */
function codingsOf(headers: HeaderList): readonly string[] {
  return headers
    .filter(namesCoding)
    .flatMap(([, value]) => value.split(","))
    .map((coding) => coding.trim().toLowerCase().replace(/^x-/, ""))
    .filter((coding) => coding !== "" && coding !== "identity");
}

/**
 * Whether an `Accept-Encoding` field (RFC 9110 §12.5.3) accepts a coding. A weight of 0 is a refusal, a
 * coding's own entry counts more than `*`, and no field accepts none.
 */
export function accepts(acceptEncoding: string | undefined, coding: string): boolean {
  let any = false;
  for (const entry of acceptEncoding?.split(",") ?? []) {
    const [name = "", ...parameters] = entry.split(";").map((part) => part.trim().toLowerCase());
    const accepted = !parameters.some((parameter) => /^q=0(?:\.0{0,3})?$/.test(parameter));
    if (name.replace(/^x-/, "") === coding) return accepted;
    if (name === "*") any = accepted;
  }
  return any;
}

function isContentCoding(coding: string): coding is ContentCoding {
  return coding === "gzip" || coding === "deflate" || coding === "br" || coding === "zstd";
}

/** The decoded body is another representation: no coding, no strong validator of the coded one. */
function decodedHeaders(headers: HeaderList): HeaderList {
  const decoded = headers
    .filter(([name]) => name.toLowerCase() !== "content-encoding")
    .map(([name, value]): readonly [string, string] =>
      name.toLowerCase() === "etag" && value.startsWith('"') ? [name, `W/${value}`] : [name, value],
    );
  const varies = decoded.some(
    ([name, value]) =>
      name.toLowerCase() === "vary" && /(?:^|[\s,])(?:\*|accept-encoding)(?:$|[\s,])/i.test(value),
  );
  return varies ? decoded : [...decoded, ["Vary", "Accept-Encoding"]];
}
