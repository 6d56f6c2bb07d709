import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readPreferredWaitMs } from "./prefer.js";

describe("readPreferredWaitMs", () => {
  it.each<[string, string[], number]>([
    ["seconds", ["wait=10"], 10_000],
    ["zero", ["wait=0"], 0],
    ["a quoted word", ['wait="10"'], 10_000],
    ["any case and white space", ["WAIT = 7"], 7_000],
    ["parameters, which mean nothing", ["wait=3;foo=bar"], 3_000],
    ["one of several preferences", ["respond-async, wait=5, handling=lenient"], 5_000],
    ["a later line", ["respond-async", "wait=5"], 5_000],
    ["the first of two", ["wait=1, wait=2"], 1_000],
    ["not what is quoted", ['foo="wait=9, wait=8", wait=4'], 4_000],
    ["not a longer name", ["wait-less=9, waiting=8, wait=4"], 4_000],
  ])("reads %s", (_what, lines, waitMs) => {
    expect(readPreferredWaitMs(lines)).toBe(waitMs);
  });

  it.each([
    [[]],
    [[""]],
    [["wait"]],
    [["wait="]],
    [["wait=-1"]],
    [["wait=1.5"]],
    [["wait=5s"]],
    [["wait=1e3"]],
    [["wait=99999999999999999999"]],
    [["wait=soon, wait=5"]],
    [['foo="wait=9']],
    [[`foo=${"x".repeat(2_000)}, wait=5`]],
  ])("ignores %j", (lines) => {
    expect(readPreferredWaitMs(lines)).toBeUndefined();
  });

  it("never throws and never gives a wait that is not a whole number of seconds", () => {
    const pieces = fc.constantFrom("wait", "=", "1", '"', "\\", ",", ";", " ", "a", "wait=2");
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 40 }), (parts) => {
        const waitMs = readPreferredWaitMs([parts.join("")]);
        expect(waitMs === undefined || (waitMs >= 0 && waitMs % 1_000 === 0)).toBe(true);
      }),
    );
  });
});
