import { beforeEach, describe, expect, test } from "vitest";
import { handleOnce } from "../../src/consumers/index.js";
import type { Work } from "../../src/index.js";
import { consumers, hello, reasonOf } from "./consumers.js";

let events: ReturnType<typeof consumers>["events"];
let effects: ReturnType<typeof consumers>["effects"];
let instance: ReturnType<typeof consumers>["instance"];
let charge: ReturnType<typeof consumers>["charge"];
let consumer: ReturnType<typeof consumers>["consumer"];

beforeEach(() => {
  ({ events, effects, instance, charge, consumer } = consumers());
});

describe("a message that cannot be told from others", () => {
  test("has no key, or none that can be used: a dead letter, counted like every other call", async () => {
    const deliver = consumer(charge);
    expect(reasonOf(await deliver({ body: "hello" }))).toBe("key-missing");
    expect(reasonOf(await deliver({ id: "", body: "hello" }))).toBe("key-missing");
    expect(events.filter(({ type }) => type === "finished")).toMatchObject([
      { outcome: "missing_key", operation: "consumer:billing" },
      { outcome: "missing_key" },
    ]);
    expect(reasonOf(await consumer(charge, { key: () => ({}) as never })(hello))).toBe("key-invalid");
  });

  test("has no caller where keys belong to one, or nothing to compare by: a dead letter", async () => {
    expect(reasonOf(await consumer(charge, { scope: (m) => m.tenant })(hello))).toBe("scope-missing");
    expect(reasonOf(await consumer(charge, { input: () => () => undefined })(hello))).toBe(
      "input-unsupported",
    );
  });

  test("breaks the functions that look at it: a dead letter with their error, never a rejection", async () => {
    const breaks = () => {
      throw new Error("not JSON");
    };
    const verdicts = await Promise.all([
      consumer(charge, { key: breaks })(hello),
      consumer(charge, { scope: breaks })(hello),
      consumer(charge, { input: breaks })(hello),
    ]);
    expect(verdicts.map(reasonOf)).toEqual(["key-invalid", "scope-failed", "input-unsupported"]);
    for (const verdict of verdicts)
      expect(verdict).toMatchObject({ error: { cause: { message: "not JSON" } } });
    expect(effects).toEqual([]);
  });

  test("has no key and is to be handled all the same: each time it comes, visibly unprotected", async () => {
    const seen: Work[] = [];
    const deliver = consumer((_, work) => void seen.push(work), { onMissingKey: "run" });
    for (let n = 0; n < 2; n += 1) expect(await deliver({ body: "hello" })).toMatchObject({ kind: "done" });
    expect(seen.map((work) => work.protected)).toEqual([false, false]);
    expect(new Set(seen.map((work) => work.downstreamKey("bank"))).size).toBe(2);
    expect(await deliver(hello)).toMatchObject({ how: "executed" });
    expect(seen.at(-1)?.protected).toBe(true);
  });
});

describe("options", () => {
  test("are told of every verdict; a listener that throws or rejects changes nothing", async () => {
    const heard: string[] = [];
    const deliver = consumer(charge, {
      onVerdict: (verdict, message) => {
        heard.push(`${message.body}: ${verdict.kind}`);
        if (heard.length === 1) throw new Error("a faulty listener");
        return Promise.reject(new Error("an async one")) as never;
      },
    });
    expect(await deliver(hello)).toMatchObject({ kind: "done" });
    expect(await deliver({ body: "no key" })).toMatchObject({ kind: "dead-letter" });
    expect(heard).toEqual(["hello: done", "no key: dead-letter"]);
  });

  test("say how long deliveries are put back for", async () => {
    const fails = () => {
      throw new Error("declined");
    };
    const delays = async (backoff: { firstMs?: number; mostMs?: number }) => {
      const deliver = consumer(fails, { backoff });
      const verdicts = await Promise.all([
        deliver(hello),
        deliver({ ...hello, id: "m2" }, { deliveries: 99 }),
      ]);
      return verdicts.map((verdict) => (verdict.kind === "put-back" ? verdict.delayMs : undefined));
    };
    expect(await delays({ firstMs: 10, mostMs: 500 })).toEqual([10, 500]);
    expect(await delays({ mostMs: 500 })).toEqual([500, 500]);
    expect(await delays({ firstMs: 60_000 })).toEqual([60_000, 60_000]);
  });

  test("are checked when the consumer is made, all at once", () => {
    const wrong = {
      consumer: "",
      key: "id",
      scope: "tenant",
      input: "body",
      onMissingKey: "run",
      guarantee: "at-most-once",
      result: {},
      backoff: { firstMs: 2_000, mostMs: 1_000, max: 1 },
      leaseMS: 1,
    } as never;
    expect(() => handleOnce(instance(), wrong, undefined as never)).toThrow(
      expect.objectContaining({
        code: "CONFIGURATION_INVALID",
        problems: [
          "leaseMS is not an option",
          "consumer must be a text that names who consumes",
          "key must be a function that finds the key of a message",
          'onMissingKey "run" contradicts guarantee "at-most-once": what has no key may start twice',
          'scope must be "global" or a function that finds whose key it is',
          'input must be "off" or a function that says what repeats are compared by',
          "result must have the functions encode and decode",
          "backoff.max is not an option",
          "handler, the last argument, must be a function",
        ],
      }),
    );
    expect(() =>
      handleOnce(
        instance(),
        { consumer: "c", key: () => 1, input: "off", backoff: { firstMs: 2, mostMs: 1 } },
        charge,
      ),
    ).toThrow(/backoff.firstMs must be a number of milliseconds from 1 to 1/);
    expect(() => handleOnce({} as never, undefined as never, charge)).toThrow(
      /idempotency, the first argument/,
    );
  });
});
