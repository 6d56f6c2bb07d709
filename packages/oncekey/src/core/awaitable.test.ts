import { describe, expect, it } from "vitest";
import { promised, started, whenDone } from "./awaitable.js";

describe("started", () => {
  it("gives what is there as it is, and what is thrown as a rejection", async () => {
    expect(started(() => 7)).toBe(7);
    const later = Promise.resolve(7);
    expect(started(() => later)).toBe(later);
    await expect(
      started(() => {
        throw new Error("at once");
      }),
    ).rejects.toThrow("at once");
  });
});

describe("promised", () => {
  it("makes a promise of what is like one, and leaves the rest alone", async () => {
    expect(promised(7)).toBe(7);
    // biome-ignore lint/suspicious/noThenProperty: that is what it is about.
    const alike = { then: (heard: (value: number) => void) => heard(7) };
    const answer = promised(alike as never);
    expect(answer).toBeInstanceOf(Promise);
    expect(await answer).toBe(7);
  });
});

describe("whenDone", () => {
  it("goes on at once with what is there, and later with what is not", async () => {
    const seen: number[] = [];
    const note = (value: number) => seen.push(value);
    expect(whenDone(1, note)).toBe(1);
    const later = whenDone(Promise.resolve(2), note);
    expect(seen).toEqual([1]);
    await later;
    expect(seen).toEqual([1, 2]);
  });

  it("tells `failed` of a rejection, and not of what `next` throws", async () => {
    const failed = (error: unknown) => `caught ${String(error)}`;
    expect(await whenDone(Promise.reject<string>("no"), String, failed)).toBe("caught no");
    const thrown = () => {
      throw new Error("next");
    };
    await expect(whenDone(Promise.resolve(1), thrown, failed)).rejects.toThrow("next");
    expect(() => whenDone(1, thrown, failed)).toThrow("next");
  });
});
