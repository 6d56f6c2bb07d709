import { Readable } from "node:stream";
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

  it("may have its headers in any of the usual forms, with numbers as values", () => {
    const forms = [
      { "retry-after": 5, link: ["</a>", "</b>"] },
      [
        ["retry-after", 5],
        ["link", "</a>"],
        ["link", "</b>"],
      ],
      new Map<string, unknown>([
        ["retry-after", "5"],
        ["link", ["</a>", "</b>"]],
      ]),
    ];
    for (const headers of forms) {
      expect(textOf(encodeDone({ status: 200, headers, body: "" })).headers).toEqual([
        ["retry-after", "5"],
        ["link", "</a>"],
        ["link", "</b>"],
      ]);
    }
    const headers = new Headers({ "retry-after": "5", "content-type": "text/csv" });
    expect(textOf(encodeDone({ status: 200, headers, body: "a;b" })).headers).toEqual([
      ["content-type", "text/csv"],
      ["retry-after", "5"],
    ]);
  });

  it("keeps of its headers what is kept of any answer", () => {
    const headers = {
      "Content-Length": 99,
      Connection: "x-hop",
      "X-Hop": "1",
      "Set-Cookie": "s=1",
      ETag: '"1"',
    };
    expect(textOf(encodeDone({ status: 200, headers, body: "" })).headers).toEqual([["ETag", '"1"']]);
  });

  it("leaves out the coding of a fetched response, whose text is decoded", () => {
    const headers = new Headers({ "content-encoding": "gzip", "content-type": "application/json" });
    const kept = [["content-type", "application/json"]];
    for (const body of ['{"id":1}', { id: 1 }]) {
      expect(textOf(encodeDone({ status: 200, headers, body }))).toEqual({
        status: 200,
        headers: kept,
        body: '{"id":1}',
      });
    }
    const coded = encodeDone({ status: 200, headers, body: new Uint8Array([31, 139]) });
    expect(textOf(coded).headers).toEqual([["content-encoding", "gzip"], ...kept]);
  });

  it.each([
    [{ Location: undefined }, /The header "Location" of a result must be a text, a number/],
    [{ Location: new URL("http://shop.example") }, /The header "Location" of a result/],
    [{ Location: Number.NaN }, /The header "Location" of a result/],
    [{ Location: "a\r\nb: c" }, /the value of the header Location is not valid/],
    [{ "not a name": "x" }, /"not a name" is no name of a header/],
    [[["Location"]], /an object, a list of \[name, value\], or Headers/],
    ["Location: x", /an object, a list of/],
  ])("names the header that cannot be stored: %j", (headers, message) => {
    expect(() => encodeDone({ status: 200, headers })).toThrow(message);
  });

  it.each<[string, unknown]>([
    ["bytes", new Uint8Array([104, 105])],
    ["an ArrayBuffer", new Uint8Array([104, 105]).buffer],
    ["another view", new DataView(new Uint8Array([0, 104, 105]).buffer, 1)],
  ])("may have %s as its body", (_, body) => {
    expect(textOf(encodeDone({ status: 200, body }))).toEqual({ status: 200, headers: [], body: "hi" });
  });

  it("is no Response, whose body would have to be waited for", () => {
    expect(() => encodeDone(new Response("paid"))).toThrow(
      /Give \{ status: .* body: await response\.text\(\) \}/,
    );
    expect(() => encodeDone(Response.json({ id: 1 }))).toThrow(TypeError);
  });

  it.each<[string, unknown]>([
    ["ReadableStream", new Response("paid").body],
    ["Blob", new Blob(["paid"])],
    ["FormData", new FormData()],
    ["URLSearchParams", new URLSearchParams()],
    ["Response", new Response("paid")],
    ["Promise", Promise.resolve("paid")],
    ["Map", new Map()],
    ["Error", new Error("paid")],
    ["Function", () => "paid"],
    ["Symbol", Symbol("paid")],
    ["Object", Readable.from(["paid"])],
    ["Number", Number.NaN],
  ])("cannot have a %s as its body", (name, body) => {
    expect(() => encodeDone({ status: 200, body })).toThrow(
      `text, bytes, or data for JSON; read a ${name} first`,
    );
  });

  it.each<[string, unknown]>([
    ["Map", new Map([["id", 1]])],
    ["Set", new Set([1])],
    ["Blob", new Blob(["paid"])],
    ["Promise", Promise.resolve("paid")],
    ["Number", Number.POSITIVE_INFINITY],
  ])("cannot have a %s anywhere in its body", (name, value) => {
    for (const body of [{ order: { receipt: value } }, [value]]) {
      expect(() => encodeDone({ status: 200, body })).toThrow(`read a ${name} first`);
    }
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
