import { describe, expect, it } from "vitest";
import { encodeResult, RESULT_TOMBSTONE } from "../core/codec.js";
import { encodeDone, snapshotOf } from "./done.js";

function textOf(outcome: Parameters<typeof snapshotOf>[0]) {
  const { status, headers, body } = snapshotOf(outcome);
  return { status, headers, body: body && new TextDecoder().decode(body) };
}

/** What an operator's script stores that has never served the route. */
function storedElsewhere(result: unknown) {
  const encoded = encodeResult(result, 10_000);
  if (encoded.kind !== "encoded") throw new Error(encoded.detail);
  return encoded.outcome;
}

const unreadable = expect.objectContaining({ code: "RECORD_UNREADABLE" });

describe("what is said to be done", () => {
  it.each([
    ["the serving process", encodeDone],
    ["another process", storedElsewhere],
  ])("is the answer of a repeat, said in %s", (_, stored) => {
    expect(textOf(stored({ status: 201, headers: { Location: "/orders/1" }, body: { id: 1 } }))).toEqual({
      status: 201,
      headers: [
        ["Location", "/orders/1"],
        ["Content-Type", "application/json"],
      ],
      body: '{"id":1}',
    });
    expect(textOf(stored({ status: 200, body: "plain" }))).toEqual({
      status: 200,
      headers: [],
      body: "plain",
    });
    expect(textOf(stored({ status: 204 }))).toEqual({ status: 204, headers: [], body: "" });
  });

  it("without a result is a tombstone, wherever it was said", () => {
    const tombstone = { status: 200, headers: [], body: undefined };
    expect(textOf(encodeDone(undefined))).toEqual(tombstone);
    expect(textOf(RESULT_TOMBSTONE)).toEqual(tombstone);
  });

  it.each([["a receipt"], [{ receipt: "ch_1" }], [{ status: 99 }], [{ status: "done" }]])(
    "is unreadable where it is no answer: %j",
    (result) => {
      expect(() => snapshotOf(storedElsewhere(result))).toThrow(unreadable);
    },
  );

  it("is unreadable where the record is damaged", () => {
    expect(() => snapshotOf({ head: "", body: undefined })).toThrow(unreadable);
    expect(() => snapshotOf({ head: "json/2", body: new Uint8Array(0) })).toThrow(unreadable);
    expect(() => snapshotOf({ head: "json/1", body: new TextEncoder().encode("{") })).toThrow(unreadable);
  });
});
