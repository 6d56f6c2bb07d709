import { describe, expect, it } from "vitest";
import type { IdempotencyEvent } from "../../src/core/events.js";
import { createIdempotency } from "../../src/core/idempotency.js";
import { GLOBAL_SCOPE } from "../../src/core/key.js";
import { memoryStore } from "../../src/stores/memory/index.js";
import { codeOf } from "./processes.js";

const call = (key: unknown = "k") => ({ operation: "op", key: key as string, input: 1 });

describe("the scope of an instance", () => {
  it("stands in where a call has none, and never where a call's own is missing", async () => {
    const idempotency = createIdempotency({ store: memoryStore(), scope: "global" });
    expect(await idempotency.run(call(), () => "global")).toBe("global");
    expect(await idempotency.run({ ...call(), scope: GLOBAL_SCOPE }, () => "again")).toBe("global");
    expect(await idempotency.run({ ...call(), scope: "global" }, () => "a user")).toBe("a user");
    for (const scope of [undefined, null, "", [], [null]]) {
      expect(await codeOf(idempotency.run({ ...call(), scope: scope as undefined }, () => "ran"))).toBe(
        "SCOPE_MISSING",
      );
    }
  });

  it("may be found by a function: each caller has its own, a missing one is refused, a throw is SCOPE_FAILED", async () => {
    let user: () => string | number | undefined = () => "alice";
    const idempotency = createIdempotency({ store: memoryStore(), scope: () => user() });
    expect(await idempotency.run(call(), () => "for alice")).toBe("for alice");
    user = () => 1;
    expect(await idempotency.run(call(), () => "for 1")).toBe("for 1");
    user = () => "1";
    expect(await idempotency.run(call(), () => "again")).toBe("for 1");
    user = () => undefined;
    expect(await codeOf(idempotency.run(call(), () => "ran"))).toBe("SCOPE_MISSING");
    const cause = new Error("no session");
    user = () => {
      throw cause;
    };
    const error = await idempotency.run(call(), () => "ran").catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "SCOPE_FAILED", status: 500, cause });
  });

  it("may be GLOBAL_SCOPE in place of the word", async () => {
    const store = memoryStore();
    const said = createIdempotency({ store, scope: GLOBAL_SCOPE });
    const word = createIdempotency({ store, scope: "global" });
    expect(await said.run(call(), () => "first")).toBe("first");
    expect(await word.run(call(), () => "second")).toBe("first");
    expect(said.scoped).toBe(true);
  });

  it("is needed from the call where there is none", async () => {
    const idempotency = createIdempotency({ store: memoryStore() });
    expect(await codeOf(idempotency.run(call() as never, () => "ran"))).toBe("SCOPE_MISSING");
  });
});

describe("what came in place of options or of a store", () => {
  const given: [what: string, options: unknown, problem: RegExp][] = [
    ["nothing", undefined, /^options must be an object with a store/],
    ["a store for options", memoryStore(), /^options must .* a store came in its place: write \{ store \}$/],
    ["no store", {}, /^store is missing/],
    ["a factory", { store: memoryStore }, /^store is a function \(memoryStore\); did you forget the \(\)/],
    [
      "a collection",
      { store: new Map() },
      /^store \(a Map\) has no claim, extend, complete, release, markUnknown, …:/,
    ],
    ["a text", { store: "records.db" }, /^store must be an object, not a string$/],
    [
      "an unfinished store",
      { store: { ...memoryStore(), close: undefined, traits: undefined } },
      /^store has no close, traits: it must/,
    ],
  ];
  it.each(given)("is said in one problem: %s", (_, options, problem) => {
    expect(() => createIdempotency(options as never)).toThrowError(
      expect.objectContaining({
        code: "CONFIGURATION_INVALID",
        problems: [expect.stringMatching(problem)],
      }),
    );
  });
});

describe("an instance", () => {
  it("keeps its namespace apart from others in the same store", async () => {
    const store = memoryStore();
    const [a, b] = ["a", "b"].map((namespace) => createIdempotency({ store, namespace, scope: "global" }));
    expect(await a?.run(call(), () => "a")).toBe("a");
    expect(await b?.run(call(), () => "b")).toBe("b");
    expect(await a?.run(call(), () => "again")).toBe("a");
  });

  it("passes on what its store warns of, and does not mind a listener that throws", async () => {
    const events: IdempotencyEvent[] = [];
    const store = { ...memoryStore(), warnings: ["only one process sees this"] };
    const idempotency = createIdempotency({
      store,
      scope: "global",
      onEvent: (event) => {
        events.push(event);
        throw new Error("bug");
      },
    });
    expect(events).toEqual([{ type: "warning", text: "only one process sees this" }]);
    expect(await idempotency.run(call(), () => "done")).toBe("done");
  });

  it("names no key, scope, input or result in its events", async () => {
    const events: IdempotencyEvent[] = [];
    const idempotency = createIdempotency({
      store: memoryStore(),
      onEvent: (event) => void events.push(event),
    });
    const secret = { operation: "op", key: "SECRET-key", scope: "SECRET-scope", input: "SECRET-input" };
    await idempotency.run(secret, () => "SECRET-result");
    await idempotency.run(secret, () => "SECRET-result");
    await codeOf(idempotency.run({ ...secret, input: "SECRET-other" }, () => "ran"));
    expect(events.map(({ type }) => type)).toEqual([
      "claimed",
      "completed",
      "finished",
      "replayed",
      "finished",
      "mismatch",
      "rejected",
      "finished",
    ]);
    expect(JSON.stringify(events)).not.toContain("SECRET");
  });

  const wrongCalls = {
    leaseMS: 5,
    guarante: "at-most-once",
    fingerprint: "on",
    signal: {},
    result: { encode: String },
    onTombstone: 5,
    operation: "",
    leaseMs: 0,
  };
  for (const [name, value] of Object.entries(wrongCalls)) {
    it(`refuses a call whose ${name} is wrong, and does not run it`, async () => {
      const idempotency = createIdempotency({ store: memoryStore(), scope: "global" });
      let ran = false;
      const wrong = { ...call(), [name]: value } as never;
      const error = await idempotency.run(wrong, () => (ran = true)).catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ code: "CONFIGURATION_INVALID", problems: [expect.stringMatching(name)] });
      expect(ran).toBe(false);
    });
  }

  it("refuses everything that is wrong with a call at once, and what is no call", async () => {
    const idempotency = createIdempotency({ store: memoryStore(), scope: "global" });
    const error = await idempotency
      .run({ ...call(), ...wrongCalls } as never, "no function" as never)
      .catch((thrown: unknown) => thrown);
    const problems = (error as { readonly problems: readonly string[] }).problems;
    expect(problems.map((problem) => problem.split(" ")[0]).sort()).toEqual(
      [...Object.keys(wrongCalls), "the"].sort(),
    );
    for (const options of [null, undefined, 5, []]) {
      expect(await codeOf(idempotency.run(options as never, () => "ran"))).toBe("CONFIGURATION_INVALID");
    }
  });

  it("refuses a call without input, which would be answered whatever it asks, unless that is said", async () => {
    const idempotency = createIdempotency({ store: memoryStore(), scope: "global" });
    const { input: _, ...blind } = call();
    const error = await idempotency.run(blind as never, () => "ran").catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      code: "CONFIGURATION_INVALID",
      problems: [expect.stringMatching(/^input is missing/)],
    });
    expect(await idempotency.run({ ...blind, fingerprint: "off" }, () => "ran")).toBe("ran");
    expect(await idempotency.run({ ...call("other"), input: undefined }, () => "ran")).toBe("ran");
  });

  it("takes every option of a call, and members that are undefined", async () => {
    const idempotency = createIdempotency({ store: memoryStore(), scope: "global" });
    const { signal } = new AbortController();
    const result = { encode: (value: string) => value, decode: String };
    const own = { ...call(), signal, result, onTombstone: () => "gone", fingerprint: "off" } as const;
    expect(await idempotency.run({ ...own, keyLabels: true, leaseMs: 9_000 }, () => "done")).toBe("done");
    const unset = { signal: undefined, result: undefined, onTombstone: undefined, fingerprint: undefined };
    expect(await idempotency.run({ ...call("other"), ...unset }, () => "done")).toBe("done");
  });

  it("refuses input that is no data before it asks the store", async () => {
    const idempotency = createIdempotency({ store: memoryStore(), scope: "global" });
    const error = await codeOf(idempotency.run({ ...call(), input: () => 1 }, () => "ran"));
    expect(error).toBe("INPUT_UNSUPPORTED");
    expect(await idempotency.find({ ...call(), scope: GLOBAL_SCOPE })).toBeUndefined();
  });

  it("finds the work of a carrier only inside protected work", () => {
    const idempotency = createIdempotency({ store: memoryStore() });
    expect(() => idempotency.workOf({})).toThrowError(expect.objectContaining({ code: "NOT_PROTECTED" }));
  });

  it("hands out what goes on after an answer, and does not mind a platform that refuses it", async () => {
    for (const refuses of ["never", "at once", "later"]) {
      const promises: Promise<unknown>[] = [];
      const store = memoryStore();
      let failures = 1;
      const idempotency = createIdempotency({
        store: {
          ...store,
          complete: (request) =>
            failures-- > 0 ? Promise.reject(new Error("connection reset")) : store.complete(request),
        },
        scope: "global",
        waitUntil: (promise) => {
          if (refuses === "at once") throw new Error("outside of a request");
          promises.push(promise);
          // Nobody but the instance can hear of this: it would end the process.
          return refuses === "later" ? Promise.reject(new Error("the request is over")) : undefined;
        },
      });
      expect(await idempotency.run(call(), () => "done")).toBe("done");
      expect(promises).toHaveLength(refuses === "at once" ? 0 : 1);
      await idempotency.close();
      expect((await store.list({ limit: 1 })).records).toMatchObject([{ state: "completed" }]);
    }
  });

  it("whose event loop was blocked past the lease knows at once, and its signal fires in the next timer turn", async () => {
    const idempotency = createIdempotency({ store: memoryStore(), scope: "global", leaseMs: 40 });
    const seen = await idempotency.run(call(), async (work) => {
      const { signal } = work;
      const untilMs = performance.now() + 45;
      while (performance.now() < untilMs);
      const codes: unknown[] = [signal.aborted];
      try {
        work.assertHeld();
      } catch (error) {
        codes.push((error as { code: unknown }).code);
      }
      await new Promise((resolve) => setTimeout(resolve, 2));
      return [...codes, signal.aborted];
    });
    expect(seen).toEqual([false, "LEASE_LOST", true]);
  });
});
