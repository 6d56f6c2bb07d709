import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Fingerprint } from "../core/fingerprint.js";
import type { ClaimToken, RecordKey, ScopeId, StoredRecord } from "../core/record.js";
import { COLUMNS, decodeRow, encodeRow } from "./rows.js";

const text = fc.oneof(
  fc.string(),
  fc.string({ unit: "binary" }),
  fc.constantFrom("\0", "\ud800", '"', '"a"', ""),
);
const ms = fc.nat({ max: 4_102_444_800_000 });
const token = fc.uuid() as fc.Arbitrary<string> as fc.Arbitrary<ClaimToken>;

const record: fc.Arbitrary<StoredRecord> = fc
  .record({
    key: fc.constant("key" as RecordKey),
    scopeId: fc.constant("scope" as ScopeId),
    operation: text,
    label: fc.option(text, { nil: undefined }),
    state: fc.constantFrom("claimed" as const, "unknown" as const, "completed" as const, "released" as const),
    token,
    attempt: fc.nat(),
    fingerprint: fc.constant("v1:x" as Fingerprint),
    guarantee: fc.constantFrom("at-least-once" as const, "at-most-once" as const, "exactly-once" as const),
    onLapse: fc.constantFrom("takeover" as const, "hold" as const),
    leaseMs: ms,
    retentionMs: ms,
    claimedAtMs: ms,
    changedAtMs: ms,
    leaseEndsAtMs: ms,
    expiresAtMs: ms,
    outcome: fc.record(
      { head: text, body: fc.option(fc.uint8Array(), { nil: undefined }) },
      { noNullPrototype: true },
    ),
    lastCode: fc.option(text, { nil: undefined }),
    reconciler: fc.option(fc.record({ token, leaseEndsAtMs: ms }, { noNullPrototype: true }), {
      nil: undefined,
    }),
  })
  .map((made) => ({
    ...made,
    outcome: made.state === "completed" ? made.outcome : undefined,
    expiresAtMs: made.state === "unknown" ? Number.POSITIVE_INFINITY : made.expiresAtMs,
  }));

function rowOf(record: StoredRecord): Record<string, unknown> {
  const values = encodeRow(record);
  return Object.fromEntries(COLUMNS.map((column, index) => [column, values[index]]));
}

describe("a record as a row", () => {
  it("comes back as it was", () => {
    fc.assert(
      fc.property(record, (one) => {
        expect(decodeRow(rowOf(one))).toStrictEqual(one);
      }),
    );
  });

  it("holds no text that a client may cut short or change", () => {
    fc.assert(
      fc.property(record, (one) => {
        for (const value of encodeRow(one)) {
          if (typeof value === "string") expect(value).not.toMatch(/[\0\p{Surrogate}]/u);
        }
      }),
    );
  });

  it("is read alike from a connection that gives integers as bigints", () => {
    fc.assert(
      fc.property(record, (one) => {
        const row = Object.entries(rowOf(one)).map(([name, value]) => [
          name,
          typeof value === "number" ? BigInt(value) : value,
        ]);
        expect(decodeRow(Object.fromEntries(row))).toStrictEqual(one);
      }),
    );
  });

  it("is unreadable if any of its columns is missing or of another kind", () => {
    const [whole] = fc.sample(
      record.filter(({ state, reconciler }) => state === "completed" && reconciler !== undefined),
      { numRuns: 1, seed: 1 },
    );
    if (whole === undefined) throw new Error("No record was made");
    for (const column of COLUMNS) {
      for (const damaged of [undefined, {}]) {
        const read = () => decodeRow({ ...rowOf(whole), [column]: damaged });
        expect(read, `${column} = ${String(damaged)}`).toThrow(
          expect.objectContaining({ code: "RECORD_UNREADABLE" }),
        );
      }
    }
  });

  it("is not written if it breaks its own rules", () => {
    const [claimed] = fc.sample(
      record.filter(({ state }) => state === "claimed"),
      { numRuns: 1, seed: 1 },
    );
    if (claimed === undefined) throw new Error("No record was made");
    expect(() => encodeRow({ ...claimed, state: "completed" })).toThrow(TypeError);
    expect(() => encodeRow({ ...claimed, leaseEndsAtMs: Number.NaN })).toThrow(TypeError);
    expect(() => encodeRow({ ...claimed, retentionMs: Number.POSITIVE_INFINITY })).toThrow(TypeError);
  });
});
