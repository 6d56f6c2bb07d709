import { deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import * as node from "./node.js";
import type { ContentCoding, Platform } from "./platform.js";
import * as web from "./web.js";

const platforms = { node, web } satisfies Record<string, Platform>;

describe.each(Object.entries(platforms))("platform %s", (_name, platform: Platform) => {
  it("digests text and bytes alike", () => {
    // FIPS 180-4, "abc".
    expect(platform.sha256("abc")).toBe("ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0");
    expect(platform.sha256(new TextEncoder().encode("abc"))).toBe(platform.sha256("abc"));
    expect(platform.sha256("")).toBe("47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU");
  });

  it("digests a view of a larger buffer, not the buffer", () => {
    const bytes = new TextEncoder().encode("xxabcxx");
    expect(platform.sha256(bytes.subarray(2, 5))).toBe(platform.sha256("abc"));
    expect(platform.crc32(bytes.subarray(2, 5))).toBe(platform.crc32("abc"));
  });

  it("checks with the CRC-32 of gzip", () => {
    // The check value of the CRC catalogue.
    expect(platform.crc32("123456789")).toBe(0xcbf43926);
    expect(platform.crc32("")).toBe(0);
  });

  it("runs deferred tasks after what was already queued", async () => {
    const order: string[] = [];
    platform.defer(() => order.push("deferred"));
    queueMicrotask(() => order.push("microtask"));
    order.push("now");
    await platform.yieldTurn();
    expect(order).toEqual(["now", "microtask", "deferred"]);
  });

  it.each<[ContentCoding, (bytes: Uint8Array) => Uint8Array]>([
    ["gzip", gzipSync],
    ["deflate", deflateSync],
    ["deflate", deflateRawSync],
  ])("undoes %s", async (coding, compress) => {
    const bytes = new TextEncoder().encode("receipt ".repeat(1_000));
    const packed = new Uint8Array(compress(bytes));
    const result = await platform.decompress(coding, packed, bytes.byteLength);
    expect(result.kind === "decompressed" && new TextDecoder().decode(result.bytes)).toBe(
      "receipt ".repeat(1_000),
    );
    expect(await platform.decompress(coding, packed, bytes.byteLength - 1)).toEqual({ kind: "too-large" });
    expect(await platform.decompress(coding, packed, 0)).toEqual({ kind: "too-large" });
    expect(await platform.decompress(coding, packed.subarray(0, -9), bytes.byteLength)).toEqual({
      kind: "malformed",
    });
    expect(await platform.decompress(coding, new Uint8Array([1, 2, 3]), 100)).toEqual({ kind: "malformed" });
  });

  it("says when it has no decoder, and never rejects", async () => {
    for (const coding of ["br", "zstd"] as const) {
      const { kind } = await platform.decompress(coding, new Uint8Array([255, 255, 255]), 100);
      expect(["unsupported", "malformed"]).toContain(kind);
    }
  });
});

describe("the two platforms", () => {
  it("export the same names", () => {
    expect(Object.keys(web).sort()).toEqual(Object.keys(node).sort());
  });

  it("agree on every digest and check", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: "binary" }), fc.uint8Array({ maxLength: 300 })), (data) => {
        expect(web.sha256(data)).toBe(node.sha256(data));
        expect(web.crc32(data)).toBe(node.crc32(data));
      }),
    );
  });
});

describe("context", () => {
  it("follows a call through its promises and ends with it", async () => {
    const context = node.createContext<string>();
    const seen = await context?.run("outer", async () => {
      await node.yieldTurn();
      const inner = context.run("inner", () => context.current());
      return [context.current(), inner];
    });
    expect(seen).toEqual(["outer", "inner"]);
    expect(context?.current()).toBeUndefined();
  });

  it("is absent on a Web platform without AsyncLocalStorage, present on one with it", async () => {
    expect(web.createContext()).toBeUndefined();
    const { AsyncLocalStorage } = await import("node:async_hooks");
    Object.assign(globalThis, { AsyncLocalStorage });
    try {
      const context = web.createContext<number>();
      expect(context?.run(7, () => context.current())).toBe(7);
    } finally {
      Reflect.deleteProperty(globalThis, "AsyncLocalStorage");
    }
  });
});
