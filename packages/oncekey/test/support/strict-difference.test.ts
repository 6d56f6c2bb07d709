import { describe, expect, it } from "vitest";
import { difference } from "./strict-difference.js";

describe("difference", () => {
  it.each<[string, unknown, unknown]>([
    ["-0", -0, 0],
    ["undefined member", { a: undefined }, {}],
    ["hole", new Array(1), [undefined]],
    ["order", { a: 1, b: 2 }, { b: 2, a: 1 }],
    ["prototype", Object.create(null), {}],
    ["bytes", Buffer.from("a"), new Uint8Array([97])],
    ["enumerable", Object.assign(new Error("x")), Object.assign(new Error(), { message: "x" })],
    [
      "shared",
      (() => {
        const x = {};
        return [x, x];
      })(),
      [{}, {}],
    ],
    [
      "map order",
      new Map([
        [1, 1],
        [2, 2],
      ]),
      new Map([
        [2, 2],
        [1, 1],
      ]),
    ],
    ["date", new Date(0), new Date(1)],
  ])("sees a difference in %s", (_, a, b) => {
    expect(difference(a, b)).toBeDefined();
    expect(difference(a, a)).toBeUndefined();
  });
});
