/** What an operator without types gives wrong must not look like "there are none". */
import { describe, expect, it } from "vitest";
import { isOncekeyError, OncekeyError } from "../../src/core/errors.js";
import { createIdempotency } from "../../src/core/idempotency.js";
import { memoryStore } from "../../src/stores/memory/index.js";
import { codeOf } from "./processes.js";

const NOTE = { by: "ada", reason: "ticket 7" };
const TARGET = { operation: "charge", scope: "tenant", key: "k" } as const;

/** What `CONFIGURATION_INVALID` lists; anything else fails the test. */
async function problemsOf(call: Promise<unknown>): Promise<readonly string[]> {
  const error = await call.catch((thrown: unknown) => thrown);
  if (!isOncekeyError(error, "CONFIGURATION_INVALID")) throw new Error("not refused", { cause: error });
  return error.problems;
}

describe("an operator", () => {
  it("is told what may be listed, rather than that there is nothing", async () => {
    const idempotency = createIdempotency({ store: memoryStore({ sweepIntervalMs: 0 }) });
    const refusals: [options: unknown, problem: RegExp][] = [
      [{ state: "stuck" }, /^state must be one of "claimed", "lapsed", "unknown", "completed", "released"$/],
      [{ olderThanMs: "60000" }, /^olderThanMs must be a number of milliseconds .* not "60000"$/],
      [{ limit: "10" }, /^limit must be a whole number from 1 to 1000, not "10"$/],
      [{ operation: 7 }, /^operation must be a text$/],
      [{ scope: "" }, /^scope, or a part of it, is missing$/],
      [{ status: "unknown" }, /^status is not an option$/],
      ["unknown", /^options must be an object/],
      [null, /^options must be an object/],
    ];
    for (const limit of [0, 1_001, 1.5, Number.NaN]) refusals.push([{ limit }, /^limit must be/]);
    for (const [options, problem] of refusals) {
      const refusal = await problemsOf(idempotency.list(options as never));
      expect(refusal).toEqual([expect.stringMatching(problem)]);
    }
  });

  it("is told that a target can name no record", async () => {
    const idempotency = createIdempotency({ store: memoryStore({ sweepIntervalMs: 0 }) });
    const refusals: [target: unknown, problem: RegExp][] = [
      [{ recordKey: "order-1" }, /^recordKey must be .* 43 characters of base64url$/],
      [{ recordKey: undefined }, /^recordKey must be/],
      [{ operation: "charge", key: "k" }, /^scope, or a part of it, is missing/],
      [{ ...TARGET, scope: undefined }, /^scope, or a part of it, is missing/],
      [{ ...TARGET, operation: undefined }, /^operation must be a text/],
      [{ ...TARGET, key: "" }, /^key, or a part of it, is missing/],
      [{ ...TARGET, step: "" }, /^step must be the name of a step/],
      [{ ...TARGET, step: ["pay", 7] }, /^step must be the name of a step/],
      [undefined, /^target must be/],
      ["k", /^target must be/],
    ];
    for (const [target, problem] of refusals) {
      for (const call of [idempotency.find(target as never), idempotency.forget(target as never, NOTE)]) {
        expect(await problemsOf(call)).toEqual([expect.stringMatching(problem)]);
      }
    }
  });

  it("may leave the scope out where the instance has one, and never where it was looked up in vain", async () => {
    const store = memoryStore({ sweepIntervalMs: 0 });
    let caller = (): string | undefined => "tenant";
    const idempotency = createIdempotency({ store, scope: () => caller() });
    await idempotency.run({ operation: "charge", key: "k", input: 1 }, () => "done");
    const target = { operation: "charge", key: "k" };
    expect(await idempotency.find(target)).toMatchObject({ state: "completed" });
    expect(await problemsOf(idempotency.find({ ...target, scope: undefined as never }))).toHaveLength(1);
    caller = () => undefined;
    expect(await problemsOf(idempotency.find(target))).toEqual([expect.stringMatching(/^scope/)]);
    caller = () => {
      throw new Error("no session");
    };
    expect(await codeOf(idempotency.find(target))).toBe("SCOPE_FAILED");
  });

  it("has to say what became of it", async () => {
    const idempotency = createIdempotency({ store: memoryStore({ sweepIntervalMs: 0 }) });
    for (const verdict of [undefined, "done", { kind: "not done" }]) {
      expect(await problemsOf(idempotency.resolve(TARGET, verdict as never, NOTE))).toEqual([
        expect.stringMatching(/^verdict, the second argument, must be/),
      ]);
    }
  });

  it("has to say who and why", async () => {
    const idempotency = createIdempotency({ store: memoryStore({ sweepIntervalMs: 0 }) });
    for (const note of [{ by: "", reason: "" }, { by: " ", reason: "x" }, {}, undefined, null, "ada"]) {
      const { release, forget, resolve } = idempotency;
      expect(await problemsOf(release(TARGET, note as never))).not.toEqual([]);
      expect(await problemsOf(forget(TARGET, note as never))).not.toEqual([]);
      expect(await problemsOf(resolve(TARGET, { kind: "done" }, note as never))).not.toEqual([]);
    }
    expect(await problemsOf(idempotency.release(TARGET, { ...NOTE, evenIfLive: "yes" } as never))).toEqual([
      "evenIfLive must be true or false",
    ]);
  });

  it("can forget what cannot be read, in so many words, and do nothing else with it", async () => {
    const discarded: string[] = [];
    const events: unknown[] = [];
    const unreadable = () => Promise.reject(new OncekeyError("RECORD_UNREADABLE", "damaged"));
    const discard = async (key: string) => void discarded.push(key);
    const store = { ...memoryStore({ sweepIntervalMs: 0 }), find: unreadable, discard };
    const idempotency = createIdempotency({ store, onEvent: (event) => void events.push(event) });
    expect(await codeOf(idempotency.release(TARGET, { ...NOTE, evenIfLive: true }))).toBe(
      "RECORD_UNREADABLE",
    );
    expect(await codeOf(idempotency.forget(TARGET, NOTE))).toBe("CLAIM_LIVE");
    expect([discarded, events]).toEqual([[], []]);
    const forgotten = await idempotency.forget(TARGET, { ...NOTE, evenIfLive: true });
    expect(forgotten).toEqual({ kind: "applied", effectiveAfterMs: 0 });
    expect(discarded).toEqual([expect.stringMatching(/^[\w-]{43}$/)]);
    expect(events).toEqual([expect.objectContaining({ type: "operator", action: "forget", ...NOTE })]);
    const { discard: _, ...poor } = store;
    const helpless = createIdempotency({ store: poor });
    expect(await codeOf(helpless.forget(TARGET, { ...NOTE, evenIfLive: true }))).toBe("RECORD_UNREADABLE");
  });
});
