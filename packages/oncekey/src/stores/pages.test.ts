import { describe, expect, it } from "vitest";
import type { RecordKey } from "../core/record.js";
import { gatherPage, type Slice } from "./pages.js";

const entry = (place: number) => ({ place, entry: { unreadable: `k${place}` as RecordKey } });

/** A table of `rows` rows, of which every `nth` matches, read ten at a time. */
function table(rows: number, nth: number) {
  let reads = 0;
  return {
    reads: () => reads,
    async readSlice(after: number, most: number): Promise<Slice<number>> {
      reads += 1;
      const until = Math.min(after + 10, rows);
      const places = Array.from({ length: until - after }, (_, index) => after + index + 1);
      const matches = places.filter((place) => place % nth === 0).slice(0, most);
      return { matches: matches.map(entry), until: until === rows ? undefined : until };
    },
  };
}

async function all(rows: number, nth: number, request: { limit: number; withinMs?: number }) {
  const { readSlice, reads } = table(rows, nth);
  const pages: number[] = [];
  const keys: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await gatherPage(request, Number(cursor ?? 0), readSlice);
    pages.push(page.unreadable?.length ?? 0);
    keys.push(...(page.unreadable ?? []));
    cursor = page.cursor;
  } while (cursor !== undefined);
  return { pages, keys, reads: reads() };
}

describe("a page", () => {
  it("is full but for the last, and each match is on one", async () => {
    const { pages, keys } = await all(100, 3, { limit: 7 });
    expect(pages).toEqual([7, 7, 7, 7, 5]);
    expect(keys).toEqual(Array.from({ length: 33 }, (_, index) => `k${3 * (index + 1)}`));
  });

  it("that ends with the last match has no cursor", async () => {
    expect((await all(20, 10, { limit: 2 })).pages).toEqual([2]);
  });

  it("ends when its time is over, with a cursor from which nothing is missed", async () => {
    const { pages, keys, reads } = await all(100, 50, { limit: 10, withinMs: 0 });
    expect(keys).toEqual(["k50", "k100"]);
    expect(pages).toHaveLength(10);
    expect(reads).toBe(10);
  });

  it.each([0, 1_001, 1.5, Number.NaN])("of %d is refused", async (limit) => {
    const { readSlice } = table(1, 1);
    await expect(gatherPage({ limit }, 0, readSlice)).rejects.toMatchObject({
      code: "CONFIGURATION_INVALID",
    });
  });
});
