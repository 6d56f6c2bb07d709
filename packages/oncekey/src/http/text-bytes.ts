/**
 * @module
 * From text to bytes and back, on Node, for bodies that a framework has or wants as text.
 *
 * Invariant: the bytes are those that Node would send for the text, and text is made only of bytes that it gives back
 * exactly. `Buffer.from` takes ten times as long, most of it for the buffer: small texts therefore share one. A part of it is
 * written once, so nobody sees another's text change.
 */
import { isAscii } from "node:buffer";

const SHARED_BYTES = 64 * 1024;
/** A longer text has a buffer of its own, or it would leave too much of the shared one empty. */
const SHORT_TEXT = 2 * 1024;
/** The most that a character of a JavaScript text, which is a UTF-16 unit, takes in UTF-8. */
const BYTES_PER_UNIT = 3;

let shared = Buffer.alloc(0);
let used = 0;

/** The text in UTF-8. */
export function bytesOfText(text: string): Uint8Array {
  if (text.length > SHORT_TEXT) return Buffer.from(text);
  if (used + text.length * BYTES_PER_UNIT > shared.byteLength) {
    shared = Buffer.allocUnsafeSlow(SHARED_BYTES);
    used = 0;
  }
  const from = used;
  used += shared.write(text, from);
  return shared.subarray(from, used);
}

/** Beyond this the copy costs more than what sending head and body as one saves. */
const LONGEST_TEXT_BYTES = 64 * 1024;

/**
 * The same body as Node sends it cheapest: text goes out in one piece with the head, bytes in a piece of their own. Only
 * ASCII becomes text, whose bytes are the same in every encoding.
 */
export function cheapestBody(body: Uint8Array): string | Buffer {
  const bytes = bufferOf(body);
  return bytes.byteLength <= LONGEST_TEXT_BYTES && isAscii(bytes) ? bytes.toString("latin1") : bytes;
}

/** The same bytes, not a copy. */
export function bufferOf({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}
