/**
 * @module
 * CRC-32 in JavaScript, for platforms that do not bring one.
 *
 * Invariant: the same number as `zlib.crc32`, so that a record written on one platform is read on another.
 */

/** The reversed polynomial of ISO 3309, as gzip and PNG use it. */
const POLYNOMIAL = 0xedb88320;

const table = Uint32Array.from({ length: 256 }, (_, byte) => {
  let remainder = byte;
  for (let bit = 0; bit < 8; bit++) remainder = (remainder >>> 1) ^ (remainder & 1 ? POLYNOMIAL : 0);
  return remainder;
});

const encoder = new TextEncoder();

export function crc32Of(data: string | Uint8Array): number {
  const bytes = typeof data === "string" ? encoder.encode(data) : data;
  let remainder = 0xffffffff;
  for (const byte of bytes) remainder = (remainder >>> 8) ^ (table[(remainder ^ byte) & 0xff] ?? 0);
  return (remainder ^ 0xffffffff) >>> 0;
}
