import { describe, expect, it } from "vitest";
import { createIdempotency } from "../core/idempotency.js";
import { memoryStore } from "../stores/memory/index.js";
import { type HttpOptions, resolveRoute } from "./options.js";

const idempotency = createIdempotency({ store: memoryStore({ sweepIntervalMs: 0 }) });

/** As somebody without types would write it. */
function problemsOf(options: Record<string, unknown>): readonly string[] {
  try {
    resolveRoute(idempotency, options as HttpOptions<unknown>);
    return [];
  } catch (error) {
    return (error as { readonly problems: readonly string[] }).problems;
  }
}

describe("the options of a route", () => {
  it("are refused when misspelt, which would otherwise be a default in silence", () => {
    expect(problemsOf({ scope: "global", leasMs: 5, onMissingkey: "run" })).toEqual([
      "leasMs is not an option",
      "onMissingkey is not an option",
    ]);
  });

  it("are all judged at once", () => {
    const problems = problemsOf({
      leaseMs: 0,
      retentionMs: "1 fortnight",
      key: [],
      onMissingScope: "ignore",
      maxKeyLength: Number.NaN,
      fingerprint: { fields: ["amount"] },
    });
    const named = ["leaseMs", "retentionMs", "key", "onMissingScope", "maxKeyLength", "fields", "scope"];
    for (const name of named) expect(problems.some((problem) => problem.startsWith(name))).toBe(true);
    expect(problems.length).toBeGreaterThanOrEqual(named.length);
  });

  it("are refused where a function or a list would be called for", () => {
    const options = { onTombstone: "replay", commitWhen: 399, renderRefusal: "json", methods: "POST" };
    expect(problemsOf({ scope: "global", ...options })).toEqual([
      'methods must be a list of names, such as ["POST"]',
      'onTombstone must be one of "status", "refuse", a function',
      "commitWhen must be a function",
      "renderRefusal must be a function",
    ]);
  });

  it("refuse to run unprotected what must not start twice", () => {
    const options = { scope: "global", guarantee: "at-most-once", acceptsLostWrites: true } as const;
    expect(problemsOf({ ...options, onMissingKey: "run", onMissingScope: "run" })).toHaveLength(2);
    expect(problemsOf(options)).toEqual([]);
  });
});
