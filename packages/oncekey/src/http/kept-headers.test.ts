import { describe, expect, it } from "vitest";
import { keepHeaders } from "./kept-headers.js";
import type { HeaderList } from "./snapshot.js";

const entering: HeaderList = [
  ["Access-Control-Allow-Origin", "https://first.test"],
  ["X-Request-Id", "1"],
  ["X-Powered-By", "Express"],
  ["Vary", "Origin"],
  ["X-Version", "1"],
];

describe("keepHeaders", () => {
  it("keeps what the work set, in order, with every line of a name", () => {
    const leaving: HeaderList = [
      ...entering,
      ["Location", "/orders/1"],
      ["Link", "</a>; rel=a"],
      ["ETag", '"1"'],
      ["link", "</b>; rel=b"],
      ["Content-Encoding", "gzip"],
      ["Retry-After", "3"],
      ["Cache-Control", "no-store"],
    ];
    expect(keepHeaders(entering, leaving)).toEqual(leaving.slice(entering.length));
  });

  it("leaves out what outer layers set, and takes what the work changed of it", () => {
    const leaving: HeaderList = [
      ["x-powered-by", "Express"],
      ["vary", "Origin, Accept"],
      ["X-Version", "1"],
      ["X-Version", "2"],
    ];
    expect(keepHeaders(entering, leaving)).toEqual(leaving.slice(1));
  });

  it("does not take the same lines in another order for unchanged", () => {
    const before: HeaderList = [
      ["Link", "a"],
      ["Link", "b"],
    ];
    expect(keepHeaders(before, before)).toEqual([]);
    expect(keepHeaders(before, [...before].reverse())).toEqual([...before].reverse());
    expect(keepHeaders(before, before.slice(0, 1))).toEqual(before.slice(0, 1));
  });

  it.each([
    ...["Connection", "Keep-Alive", "Transfer-Encoding", "TE", "Trailer", "Upgrade", "Proxy-Connection"],
    ...["Content-Length", "Date", "Age", "Via", "Server-Timing", "Set-Cookie"],
    ...["Access-Control-Allow-Origin", "Access-Control-Expose-Headers", "X-Request-Id", "X-Correlation-Id"],
    ...[
      "traceparent",
      "tracestate",
      "RateLimit",
      "RateLimit-Policy",
      "RateLimit-Reset",
      "X-RateLimit-Remaining",
    ],
    ...["Strict-Transport-Security", "Content-Security-Policy", "Content-Security-Policy-Report-Only"],
    ...["Idempotency-Replayed", "Idempotency-Body", "Idempotency-Degraded"],
  ])("never keeps %s, also where the work set or changed it, in any case", (name) => {
    for (const spelled of [name, name.toLowerCase(), name.toUpperCase()]) {
      expect(keepHeaders([], [[spelled, "new"]])).toEqual([]);
      expect(keepHeaders([[name, "old"]], [[spelled, "new"]])).toEqual([]);
    }
  });

  it("never keeps what Connection names", () => {
    const leaving: HeaderList = [
      ["Connection", "close, X-Hop"],
      ["connection", "X-Other"],
      ["X-Hop", "1"],
      ["x-other", "2"],
      ["X-Stays", "3"],
    ];
    expect(keepHeaders([], leaving)).toEqual([["X-Stays", "3"]]);
  });

  it("does not take names of objects for headers", () => {
    expect(keepHeaders([], [["constructor", "1"]])).toEqual([["constructor", "1"]]);
    expect(keepHeaders([["a", "1"]], [["__proto__", "1"]])).toEqual([["__proto__", "1"]]);
  });
});
