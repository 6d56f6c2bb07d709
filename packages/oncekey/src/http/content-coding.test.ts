import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { accepts, forClient, needsDecoding } from "./content-coding.js";
import type { HeaderList, Snapshot } from "./snapshot.js";

const plain = "receipt ".repeat(100);
const text = (body: Uint8Array | undefined) => new TextDecoder().decode(body);
const encoded = (coding: string, body: Uint8Array, ...more: HeaderList): Snapshot => ({
  status: 200,
  headers: [["Content-Encoding", coding], ["Content-Type", "text/plain"], ...more],
  body: Uint8Array.from(body),
});
const gzipped = encoded("gzip", gzipSync(plain));

describe("accepts", () => {
  it.each<[string | undefined, string, boolean]>([
    ["gzip, deflate, br", "br", true],
    ["gzip, deflate", "br", false],
    ["GZIP;q=0.5", "gzip", true],
    ["x-gzip", "gzip", true],
    ["gzip;q=0", "gzip", false],
    ["gzip; q=0.000", "gzip", false],
    ["gzip;q=0.001", "gzip", true],
    ["*", "br", true],
    ["*;q=0", "br", false],
    ["br;q=0, *", "br", false],
    ["*;q=0, br", "br", true],
    ["identity", "gzip", false],
    ["", "gzip", false],
    [undefined, "gzip", false],
  ])("reads %j for %s as %s", (field, coding, accepted) => {
    expect(accepts(field, coding)).toBe(accepted);
  });
});

describe("forClient", () => {
  it("leaves a coded body as it is for a client that accepts the coding", async () => {
    expect(await forClient(gzipped, "br, gzip", 10_000)).toBe(gzipped);
    expect(needsDecoding(gzipped, "br, gzip")).toBe(false);
  });

  it.each<[string, Uint8Array]>([
    ["gzip", gzipSync(plain)],
    ["X-GZip", gzipSync(plain)],
    ["deflate", deflateSync(plain)],
    ["deflate", deflateRawSync(plain)],
    ["br", brotliCompressSync(plain)],
    ["gzip, br", brotliCompressSync(gzipSync(plain))],
  ])("decodes %s for a client that does not", async (coding, body) => {
    const snapshot = encoded(coding, body);
    expect(needsDecoding(snapshot, undefined)).toBe(true);
    const replay = await forClient(snapshot, undefined, 10_000);
    expect(text(replay.body)).toBe(plain);
    expect(replay.headers).toEqual([
      ["Content-Type", "text/plain"],
      ["Vary", "Accept-Encoding"],
    ]);
  });

  it("weakens a strong validator of the coded body, and adds Vary once", async () => {
    const snapshot = encoded("gzip", gzipSync(plain), ["ETag", '"1"'], ["Vary", "Origin, accept-encoding"]);
    const { headers } = await forClient(snapshot, "identity", 10_000);
    expect(headers).toEqual([
      ["Content-Type", "text/plain"],
      ["ETag", 'W/"1"'],
      ["Vary", "Origin, accept-encoding"],
    ]);
  });

  it.each<[string, Snapshot]>([
    ["no body", { ...gzipped, body: undefined }],
    ["no coding", { status: 200, headers: [], body: new Uint8Array(1) }],
    ["identity", encoded("identity", gzipSync(plain))],
  ])("has nothing to decode in a response with %s", async (_what, snapshot) => {
    expect(needsDecoding(snapshot, undefined)).toBe(false);
    expect(await forClient(snapshot, undefined, 10_000)).toBe(snapshot);
  });

  it.each<[string, Snapshot, number]>([
    ["of an unknown coding", encoded("compress", gzipSync(plain)), 10_000],
    ["that is damaged", encoded("gzip", gzipSync(plain).subarray(0, -9)), 10_000],
    ["that would be too large", gzipped, plain.length - 1],
  ])("replays a body %s as it was stored", async (_what, snapshot, maxBytes) => {
    expect(await forClient(snapshot, undefined, maxBytes)).toBe(snapshot);
  });

  it("is bounded by what comes out, not by what goes in", async () => {
    const bomb = encoded("gzip", gzipSync(Buffer.alloc(20_000_000)));
    expect(await forClient(bomb, undefined, 1_000_000)).toBe(bomb);
  });
});
