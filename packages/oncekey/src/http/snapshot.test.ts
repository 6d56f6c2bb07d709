import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { StoredOutcome } from "../core/record.js";
import { decodeSnapshot, encodeSnapshot, type Snapshot, tombstoneOf } from "./snapshot.js";

const name = fc.string({ unit: fc.constantFrom(..."aZ0-_!~x"), minLength: 1, maxLength: 12 });
const value = fc.string({ unit: "binary", maxLength: 20 }).filter((text) => !/[\r\n\0]/.test(text));
const snapshots: fc.Arbitrary<Snapshot> = fc.record({
  status: fc.integer({ min: 200, max: 599 }),
  headers: fc.array(fc.tuple(name, value), { maxLength: 6 }),
  body: fc.uint8Array({ maxLength: 200 }),
});

const snapshot: Snapshot = {
  status: 201,
  headers: [
    ["Location", "/orders/1"],
    ["Link", "</a>; rel=a"],
    ["X-Note", 'ünïcode "quoted"'],
    ["link", "</b>; rel=b"],
    ["ETag", '"1"'],
    ["Content-Location", "/orders/1.json"],
    ["Content-Type", "application/json"],
  ],
  body: new TextEncoder().encode('{"id":1}'),
};

/** What a real store does: the bytes come back as other bytes. */
function stored({ head, body }: StoredOutcome): StoredOutcome {
  return { head: `${head}`, body: body && Uint8Array.from(body) };
}

const unreadable = expect.objectContaining({ code: "RECORD_UNREADABLE" });

describe("a stored response", () => {
  it("comes back as it was: status, headers with their order and repeats, every byte", () => {
    fc.assert(
      fc.property(snapshots, (given) => {
        expect(decodeSnapshot(stored(encodeSnapshot(given)))).toEqual(given);
      }),
    );
  });

  it.each<[string, Uint8Array]>([
    ["an empty body, which is a body", new Uint8Array(0)],
    ["bytes that are no text", Uint8Array.of(0xff, 0x01, 0x00, 0xfe)],
    ["a view of a larger buffer", Uint8Array.of(1, 2, 3, 4).subarray(1, 3)],
  ])("keeps %s", (_what, body) => {
    const back = decodeSnapshot(stored(encodeSnapshot({ ...snapshot, body })));
    expect(back.body && [...back.body]).toEqual([...body]);
  });

  it("may have its head kept as text by any store", () => {
    const { head } = encodeSnapshot(snapshot);
    expect(head).toMatch(/^http\/1 \d+ \d+ \[201,8,"Location",/);
    expect(head).not.toMatch(/\p{Cc}/u);
  });

  it("is a tombstone without a body, and tells only where the result is", () => {
    const tombstone = tombstoneOf(snapshot);
    expect(tombstone).toEqual({
      status: 201,
      headers: [
        ["Location", "/orders/1"],
        ["ETag", '"1"'],
        ["Content-Location", "/orders/1.json"],
      ],
      body: undefined,
    });
    expect(decodeSnapshot(stored(encodeSnapshot(tombstone)))).toEqual(tombstone);
  });

  it("becomes a tombstone when a store drops its body", () => {
    const { head } = encodeSnapshot(snapshot);
    expect(decodeSnapshot({ head, body: undefined })).toEqual(tombstoneOf(snapshot));
  });
});

describe("a damaged record", () => {
  const { head, body } = encodeSnapshot(snapshot);

  it("is noticed, whichever character of the head changed", () => {
    for (let at = 0; at < head.length; at++) {
      const damaged = `${head.slice(0, at)}${head[at] === "7" ? "8" : "7"}${head.slice(at + 1)}`;
      expect(() => decodeSnapshot({ head: damaged, body }), damaged).toThrow(unreadable);
    }
  });

  it("is noticed, whichever bit of the body changed", () => {
    const whole = body ?? new Uint8Array(0);
    for (let bit = 0; bit < whole.length * 8; bit++) {
      const damaged = whole.map((byte, at) => (at === bit >> 3 ? byte ^ (1 << (bit & 7)) : byte));
      expect(() => decodeSnapshot({ head, body: damaged })).toThrow(unreadable);
    }
    expect(whole.length).toBeGreaterThan(0);
  });

  it.each<[string, StoredOutcome]>([
    ["nothing", { head: "", body: undefined }],
    ["something else", { head: "json/1", body: new TextEncoder().encode("{}") }],
    ["a later version", { head: head.replace("http/1", "http/2"), body }],
    ["a shorter head", { head: head.slice(0, -1), body }],
    ["a longer head", { head: `${head} `, body }],
    ["a shorter body", { head, body: body?.subarray(1) }],
    ["an empty body", { head, body: new Uint8Array(0) }],
    ["another body of the same length", { head, body: body?.map((byte) => byte + 1) }],
    [
      "a body where there was none",
      { head: encodeSnapshot(tombstoneOf(snapshot)).head, body: new Uint8Array(0) },
    ],
  ])("that holds %s is an error with a code, never an answer", (_what, outcome) => {
    expect(() => decodeSnapshot(outcome)).toThrow(unreadable);
  });

  it("does not show the response in its message", () => {
    expect(() => decodeSnapshot({ head: head.replace("orders", "xrders"), body })).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining("rders/1") }),
    );
  });
});

describe("what cannot be stored", () => {
  it.each<[string, Partial<Snapshot>]>([
    ["an interim status", { status: 103 }],
    ["no status", { status: Number.NaN }],
    ["a status that does not exist", { status: 1000 }],
    ["a name that is none", { headers: [["a b", "c"]] }],
    ["an empty name", { headers: [["", "c"]] }],
    ["a line break in a value", { headers: [["a", "b\r\nSet-Cookie: c"]] }],
  ])("is refused before it is written: %s", (_what, change) => {
    expect(() => encodeSnapshot({ ...snapshot, ...change })).toThrow(TypeError);
  });
});
