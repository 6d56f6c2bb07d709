import { fastify } from "fastify";
import { describe, expect, it } from "vitest";
import type { OncekeyError } from "../core/errors.js";
import { createIdempotency } from "../core/idempotency.js";
import { memoryStore } from "../stores/memory/index.js";
import { idempotent as expressHandler } from "./express.js";
import { idempotent as fastifyPlugin } from "./fastify.js";
import { idempotent as fetchHandler } from "./fetch.js";
import { idempotent as honoHandler } from "./hono.js";
import { idempotent as nodeHandler } from "./node.js";
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
    const named = [
      "leaseMs",
      "retentionMs",
      "key",
      "onMissingScope",
      "maxKeyLength",
      "fingerprint.fields",
      "scope",
    ];
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

  const wrong: readonly (readonly [name: string, ...values: unknown[]])[] = [
    ["methods", [], [1], [""], [undefined], null, {}],
    ["operation", "", 5, {}, null],
    ["key", null, [null], "Idempotency-Key", {}, { header: 5 }, { header: "no name" }, { query: "" }],
    ["key", { body: "id" }, { body: 5 }, { header: "a", query: "b" }, { cookie: "a" }],
    ["fingerprint", "bytez", null, 5, [], {}, { fields: "/a" }, { fields: null }, { fields: [5] }],
    ["fingerprint", { fields: [] }, { fields: ["a"] }, { fields: ["/a"], except: ["/b"] }],
    ["fingerprint", { fields: ["/a"], excpet: ["/b"] }],
    ["onInFlight", null, [], "wait", { waitms: 5 }, { waitMs: "5" }, { waitMs: Object.create(null) }],
    ["acceptsLostWrites", "false", 0, null],
    ["keyLabels", "no", 1, null],
    ["docs", 5, null, ""],
    ["challenge", 5, null, ""],
    ["messages", "x", null, [], { KEY_MISSING: 5 }, { KEY_MISSING: { titel: "x" } }, { KEY_MISSNG: "x" }],
    ["renderRefusal", null, {}],
    ["leaseMs", Object.create(null), Symbol("5"), 5n, () => 5],
  ];
  for (const [name, ...values] of wrong) {
    it(`are refused with their name where the type is another: ${name}, ${values.length} ways`, () => {
      for (const value of values) {
        expect(problemsOf({ scope: "global", [name]: value })).toEqual([
          expect.stringMatching(new RegExp(`^${name}\\b`)),
        ]);
      }
    });
  }

  it("may be undefined, which is not set", () => {
    const options = Object.fromEntries(wrong.map(([name]) => [name, undefined]));
    expect(problemsOf({ ...options, scope: "global" })).toEqual([]);
    expect(problemsOf({ scope: "global", fingerprint: { fields: ["/a"], except: undefined } })).toEqual([]);
  });

  it("refuse to run unprotected what must not start twice", () => {
    const options = { scope: "global", guarantee: "at-most-once", acceptsLostWrites: true } as const;
    expect(problemsOf({ ...options, onMissingKey: "run", onMissingScope: "run" })).toHaveLength(2);
    expect(problemsOf(options)).toEqual([]);
  });
});

describe("the arguments of an adapter", () => {
  const handler = () => new Response();
  const named = (make: () => unknown) => {
    try {
      make();
    } catch (error) {
      const { code, problems } = error as OncekeyError;
      return [code, ...(problems ?? []).map((problem) => problem.split(/[ ,]/)[0])];
    }
    throw new Error("It was made");
  };

  it("are refused in one list, a missing handler among the others", () => {
    const options = { scope: "global", leasMs: 5 } as const;
    for (const adapter of [nodeHandler, fetchHandler] as ((...given: unknown[]) => unknown)[]) {
      expect(named(() => adapter(idempotency, options))).toEqual([
        "CONFIGURATION_INVALID",
        "handler",
        "leasMs",
      ]);
      expect(named(() => adapter(idempotency, handler))).toEqual([
        "CONFIGURATION_INVALID",
        "handler",
        "options",
      ]);
      expect(named(() => adapter(idempotency, undefined, handler))).toEqual([
        "CONFIGURATION_INVALID",
        "options",
      ]);
    }
  });

  it("are refused where they are no options or no instance", () => {
    for (const options of [null, 5, [], "global"]) {
      expect(named(() => resolveRoute(idempotency, options as never))).toEqual([
        "CONFIGURATION_INVALID",
        "options",
      ]);
    }
    for (const instance of [null, undefined, {}, () => undefined]) {
      expect(named(() => resolveRoute(instance as never, {}))).toEqual([
        "CONFIGURATION_INVALID",
        "idempotency",
      ]);
    }
    expect(named(() => expressHandler(idempotency, null as never))).toContain("options");
    expect(named(() => honoHandler(idempotency, null as never))).toContain("options");
    expect(named(() => fastifyPlugin(idempotency, null as never))).toContain("options");
  });

  it("are refused in the config of a Fastify route too, which is protected by true and options, not by a text", async () => {
    const declare = async (setting: unknown) => {
      const app = fastify();
      await app.register(fastifyPlugin(idempotency, { scope: "global" }));
      const config = { idempotency: setting } as { readonly idempotency: boolean };
      return app.post("/", { config }, async () => "ran").close();
    };
    for (const setting of [null, "off", 0, []]) {
      await expect(declare(setting)).rejects.toMatchObject({
        code: "CONFIGURATION_INVALID",
        problems: ["options must be an object"],
      });
    }
    for (const setting of [true, false, undefined, {}]) await declare(setting);
  });
});
