import { describe, expect, it } from "vitest";
import { isOncekeyError } from "../../core/errors.js";
import type { StoredRecord } from "../../core/record.js";
import type { ClaimRequest } from "../../core/store.js";
import { encodeClaim, encodeRecord, HEAD_LINE_BYTES } from "./layout.js";
import { decodeGlance, decodeRecord, NEVER } from "./reading.js";

const CLAIMED: StoredRecord = {
  key: "key" as never,
  scopeId: "scope" as never,
  operation: "POST /bestellungen/größe 🎉 \0 \ud800",
  label: 'an "order"',
  state: "claimed",
  token: "token-ü" as never,
  attempt: 3,
  fingerprint: "v1:abc" as never,
  guarantee: "at-most-once",
  onLapse: "hold",
  leaseMs: 30_000,
  retentionMs: 86_400_000,
  claimedAtMs: 1_764_537_600_123,
  changedAtMs: 1_764_537_600_123,
  leaseEndsAtMs: 1_764_537_630_123,
  expiresAtMs: 1_764_624_030_123,
  outcome: undefined,
  lastCode: "E_DECLINED",
  reconciler: undefined,
};

const COMPLETED: StoredRecord = {
  ...CLAIMED,
  state: "completed",
  changedAtMs: 1_764_537_601_000,
  leaseEndsAtMs: 1_764_537_601_000,
  expiresAtMs: 1_764_624_001_000,
  outcome: { head: '[201,[["location","/größe"]]]', body: Uint8Array.of(0, 255, 254, 13, 10, 0) },
};

const UNKNOWN: StoredRecord = {
  ...CLAIMED,
  state: "unknown",
  expiresAtMs: Number.POSITIVE_INFINITY,
  reconciler: { token: "another" as never, leaseEndsAtMs: 1_764_537_700_000 },
};

function expiryOf({ expiresAtMs }: StoredRecord): number {
  return expiresAtMs === Number.POSITIVE_INFINITY ? NEVER : expiresAtMs;
}

describe("a record as a value", () => {
  it.each([
    ["claimed", CLAIMED],
    ["completed", COMPLETED],
    ["completed with an empty body", { ...COMPLETED, outcome: { head: "h", body: new Uint8Array() } }],
    ["a tombstone", { ...COMPLETED, outcome: { head: "201", body: undefined } }],
    ["completed with an empty head", { ...COMPLETED, outcome: { head: "", body: Uint8Array.of(7) } }],
    ["completed with half a character", { ...COMPLETED, outcome: { head: "\ud83d", body: undefined } }],
    ["unknown and reconciling", UNKNOWN],
    ["released", { ...CLAIMED, state: "released", leaseEndsAtMs: CLAIMED.changedAtMs, label: undefined }],
  ] satisfies [string, StoredRecord][])("%s comes back as it was", (_name, record) => {
    const back = decodeRecord(record.key, encodeRecord(record), expiryOf(record));
    expect(back).toEqual(record);
  });

  it("leaves a new claim's instants to the server", () => {
    const request = { ...CLAIMED, attempt: undefined, maxAttempts: undefined } as unknown as ClaimRequest;
    const back = decodeRecord(CLAIMED.key, Buffer.from(encodeClaim(request)), CLAIMED.expiresAtMs);
    expect(back).toEqual({ ...CLAIMED, attempt: 1, lastCode: undefined });
  });

  it("shows the size of a body without it", () => {
    const value = encodeRecord(COMPLETED);
    const start = value.subarray(0, value.length - 6 - Buffer.byteLength(COMPLETED.outcome?.head ?? ""));
    const { record, bodyBytes } = decodeGlance(COMPLETED.key, start, value.length, COMPLETED.expiresAtMs);
    expect([record.state, record.operation, bodyBytes]).toEqual(["completed", COMPLETED.operation, 6]);
  });

  it("gives a body that is nobody else's", () => {
    const value = encodeRecord(COMPLETED);
    const before = Buffer.from(value);
    decodeRecord(COMPLETED.key, value, COMPLETED.expiresAtMs).outcome?.body?.fill(9);
    expect(value).toEqual(before);
  });

  it("refuses to write what no transition makes", () => {
    expect(() => encodeRecord({ ...COMPLETED, outcome: undefined })).toThrow(TypeError);
    expect(() => encodeRecord({ ...CLAIMED, attempt: 1_000_000 })).toThrow(TypeError);
    expect(() => encodeRecord({ ...CLAIMED, leaseMs: Number.NaN })).toThrow(TypeError);
  });
});

describe("a damaged value is an error with a code", () => {
  const value = encodeRecord(COMPLETED);

  it("wherever it is cut", () => {
    // Cut inside the body it still has all its sizes, but for the last: that is what the bodies of others look like.
    const bodyFrom = value.length - 6;
    for (let length = 0; length < bodyFrom; length += 1) {
      expect(() => decodeRecord(COMPLETED.key, value.subarray(0, length), COMPLETED.expiresAtMs)).toThrow(
        expect.objectContaining({ code: "RECORD_UNREADABLE" }),
      );
    }
  });

  it("whatever byte of its head line is another letter", () => {
    for (let place = 0; place < HEAD_LINE_BYTES; place += 1) {
      const damaged = Buffer.from(value);
      damaged[place] = "x".charCodeAt(0);
      try {
        decodeRecord(COMPLETED.key, damaged, COMPLETED.expiresAtMs);
        expect.unreachable(`a letter at ${place}`);
      } catch (error) {
        expect(isOncekeyError(error, "RECORD_UNREADABLE"), `a letter at ${place}`).toBe(true);
      }
    }
  });

  it.each(["", "O2", "O1", "somebody's own value", "{}"])("also if it is none: %j", (text) => {
    expect(() => decodeRecord(COMPLETED.key, Buffer.from(text), 1)).toThrow(
      expect.objectContaining({ code: "RECORD_UNREADABLE" }),
    );
  });

  it("also if somebody took its expiry away, or gave it one", () => {
    expect(() => decodeRecord(CLAIMED.key, encodeRecord(CLAIMED), NEVER)).toThrow(/damaged/);
    expect(() => decodeRecord(UNKNOWN.key, encodeRecord(UNKNOWN), 1_764_624_030_123)).toThrow(/damaged/);
  });
});
