import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  bytesBody,
  compare,
  encode,
  form,
  json,
  none,
  parsedBody,
  request,
  textBody,
} from "../../test/support/fingerprint-requests.js";
import { createFingerprinter, type FingerprintRequest } from "./fingerprint.js";
import type { RequestBody } from "./request-body.js";

describe("a whole request", () => {
  it.each<[string, FingerprintRequest, FingerprintRequest]>([
    [
      "members in another order",
      json(bytesBody('{"a":1,"b":[2]}')),
      json(bytesBody('{ "b" : [2], "a" : 1.0 }')),
    ],
    [
      "another charset spelling",
      json(bytesBody("{}")),
      json(bytesBody("{}"), "Application/JSON; charset=utf-8"),
    ],
    [
      "JSON as bytes and parsed",
      json(bytesBody('{"a":[1,"ü",null]}')),
      json(parsedBody({ a: [1, "ü", null] })),
    ],
    ["JSON as bytes and text", json(bytesBody('{"a":"ü"}')), json(textBody('{"a":"ü"}'))],
    [
      "JSON as bytes and as a raw buffer",
      json(bytesBody('{"a":1}')),
      json(parsedBody(Buffer.from('{ "a":1 }'))),
    ],
    ["a JSON text as bytes and parsed", json(bytesBody('"abc"')), json(parsedBody("abc"))],
    ["fields in another order", form(bytesBody("a=1&b=2")), form(bytesBody("b=2&a=1"))],
    ["another escape of a field", form(bytesBody("a=%7Eb+c")), form(textBody("a=~b%20c"))],
    [
      "a form as bytes and parsed",
      form(bytesBody("b=2&a=1&b=3")),
      form(parsedBody({ a: "1", b: ["2", "3"] })),
    ],
    ["a form as bytes and as text of the framework", form(bytesBody("a=1")), form(parsedBody("a=1"))],
    [
      "text as bytes and parsed",
      request(bytesBody("hé"), "text/plain"),
      request(parsedBody("hé"), "text/plain"),
    ],
    ["no body and an empty one", request(none), json(bytesBody(""))],
    ["no body and nothing parsed", request(none), json(parsedBody(undefined))],
    [
      "the query in another order",
      request(none, undefined, "/o?b=1&a=2"),
      request(none, undefined, "/o?a=2&b=1"),
    ],
    ["an empty query", request(none, undefined, "/o?"), request(none, undefined, "/o")],
    [
      "an absolute URL",
      request(none, undefined, "https://shop.test/o?a=1#top"),
      request(none, undefined, "/o?a=1"),
    ],
  ])("is the same with %s", (_what, a, b) => {
    expect(compare(a, b)).toBe("same");
  });

  it.each<[string, FingerprintRequest, FingerprintRequest]>([
    ["another method", request(none), request(none, undefined, "/orders", "PUT")],
    ["another path", request(none), request(none, undefined, "/orders/1")],
    ["another mount", request(none, undefined, "/a/create"), request(none, undefined, "/b/create")],
    ["the order of what may be one list", form(bytesBody("a=1&a[]=2")), form(bytesBody("a[]=2&a=1"))],
    [
      "the order of one name in two spellings of a query",
      request(none, undefined, "/o?a=1&%61=2"),
      request(none, undefined, "/o?%61=2&a=1"),
    ],
    ["another query", request(none, undefined, "/o?to=bob"), request(none, undefined, "/o?to=eve")],
    [
      "equal names in another order",
      request(none, undefined, "/o?a=1&a=2"),
      request(none, undefined, "/o?a=2&a=1"),
    ],
    ["a path that holds the query", request(none, undefined, "/o?a"), request(none, undefined, "/o/a")],
    ["another media type", request(bytesBody("1"), "text/plain"), request(bytesBody("1"), "text/csv")],
    ["JSON under another type", json(bytesBody("{}")), json(bytesBody("{}"), "application/merge-patch+json")],
    ["another member", json(bytesBody('{"a":1}')), json(bytesBody('{"a":2}'))],
    ["another type of value", json(bytesBody('{"a":1}')), json(bytesBody('{"a":"1"}'))],
    ["list elements in another order", json(bytesBody("[1,2]")), json(bytesBody("[2,1]"))],
    [
      "another digit that a double cannot hold",
      json(bytesBody('{"id":12345678901234567890}')),
      json(bytesBody('{"id":12345678901234567891}')),
    ],
    ["JSON that is malformed", json(bytesBody('{"a":1')), json(bytesBody('{"a":1}'))],
    ["malformed JSON with another byte", json(bytesBody('{"a":1')), json(bytesBody('{"a":2'))],
    ["JSON that is a text of JSON", json(bytesBody("{}")), json(bytesBody('"{}"'))],
    ["null and no body", json(bytesBody("null")), request(none)],
    ["equal fields in another order", form(bytesBody("a=1&a=2")), form(bytesBody("a=2&a=1"))],
    ["a field moved into another", form(bytesBody("a=1&b=2")), form(bytesBody("a=1%26b%3D2"))],
    ["a malformed escape", form(bytesBody("a=%zz")), form(bytesBody("a=%zy"))],
  ])("differs with %s", (_what, a, b) => {
    expect(compare(a, b)).toBe("different");
  });

  it("tells binary bodies apart byte by byte, under any type", () => {
    for (const type of [
      undefined,
      "application/octet-stream",
      "application/json",
      "text/plain",
      "image/png",
    ]) {
      const one: RequestBody = { kind: "bytes", bytes: Uint8Array.of(0xff, 0x01) };
      const other: RequestBody = { kind: "bytes", bytes: Uint8Array.of(0xfe, 0x01) };
      expect(compare(request(one, type), request(other, type))).toBe("different");
      expect(compare(request(one, type), request(one, type))).toBe("same");
    }
  });

  it("agrees for any JSON, as bytes in any spelling and as parsed by a framework", () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: "binary" }), (value) => {
        const bytes = json(bytesBody(JSON.stringify(value, null, 1)));
        expect(compare(bytes, json(parsedBody(JSON.parse(JSON.stringify(value)))))).toBe("same");
      }),
    );
  });

  it("never throws, whatever bytes a client sends under whatever type", () => {
    const type = fc.constantFrom(
      "application/json",
      "application/x-www-form-urlencoded",
      "multipart/form-data; boundary=X",
      "multipart/form-data",
      'text/plain; charset="',
    );
    const bytes = fc.oneof(fc.uint8Array(), fc.string().map(encode), fc.json().map(encode));
    fc.assert(
      fc.property(type, bytes, fc.string(), (contentType, body, target) => {
        const asked = request({ kind: "bytes", bytes: body }, contentType, target);
        expect(compare(asked, asked)).toBe("same");
      }),
    );
  });

  it("has an answer for 100,000 levels, the same as bytes and as parsed", () => {
    const text = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;
    expect(compare(json(bytesBody(text)), json(parsedBody(JSON.parse(text))))).toBe("same");
    expect(compare(json(bytesBody(text)), json(bytesBody(`[${text}]`)))).toBe("different");
  });

  it("is not changed by a handler that changes its input afterwards", () => {
    const fingerprint = createFingerprinter();
    const body = { items: [1] };
    const before = fingerprint(json(parsedBody(body)));
    body.items.push(2);
    expect(fingerprint(json(bytesBody('{"items":[1]}')))).toBe(before);
  });
});

describe("multipart", () => {
  async function upload(change: (form: FormData) => void): Promise<FingerprintRequest> {
    const data = new FormData();
    data.append("note", "hello");
    data.append("file", new Blob([Uint8Array.of(0xff, 0x01)], { type: "image/png" }), "a.png");
    change(data);
    const response = new Response(data);
    const bytes = new Uint8Array(await response.arrayBuffer());
    return request({ kind: "bytes", bytes }, response.headers.get("content-type") ?? undefined);
  }
  const unchanged = () => {};

  it("is the same under a new boundary", async () => {
    const [first, retry] = [await upload(unchanged), await upload(unchanged)];
    expect(first.contentType).not.toBe(retry.contentType);
    expect(compare(first, retry)).toBe("same");
  });

  it.each<[string, (form: FormData) => void]>([
    [
      "other bytes",
      (data) => data.set("file", new Blob([Uint8Array.of(0xfe, 0x01)], { type: "image/png" }), "a.png"),
    ],
    [
      "another type",
      (data) => data.set("file", new Blob([Uint8Array.of(0xff, 0x01)], { type: "image/gif" }), "a.png"),
    ],
    [
      "another file name",
      (data) => data.set("file", new Blob([Uint8Array.of(0xff, 0x01)], { type: "image/png" }), "b.png"),
    ],
    ["another field", (data) => data.set("note", "bye")],
    ["one more field", (data) => data.append("note", "hello")],
    ["one field less", (data) => data.delete("note")],
  ])("differs with %s", async (_what, change) => {
    expect(compare(await upload(unchanged), await upload(change))).toBe("different");
  });

  it("goes by its bytes where it is malformed", () => {
    const type = "multipart/form-data; boundary=X";
    expect(compare(request(bytesBody("--X\r\nhello"), type), request(bytesBody("--X\r\nhello"), type))).toBe(
      "same",
    );
    expect(compare(request(bytesBody("--X\r\nhello"), type), request(bytesBody("--X\r\nhallo"), type))).toBe(
      "different",
    );
  });
});
