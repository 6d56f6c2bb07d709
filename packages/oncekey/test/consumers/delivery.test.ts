import { beforeEach, describe, expect, test } from "vitest";
import { handleOnce } from "../../src/consumers/index.js";
import { createIdempotency, GLOBAL_SCOPE, type Work } from "../../src/index.js";
import { deferred, silent } from "../core/processes.js";
import { consumers, hello, type Message } from "./consumers.js";

let clock: ReturnType<typeof consumers>["clock"];
let line: ReturnType<typeof consumers>["line"];
let effects: ReturnType<typeof consumers>["effects"];
let instance: ReturnType<typeof consumers>["instance"];
let charge: ReturnType<typeof consumers>["charge"];
let consumer: ReturnType<typeof consumers>["consumer"];

beforeEach(() => {
  ({ clock, line, effects, instance, charge, consumer } = consumers());
});

describe("deliveries of one message", () => {
  test("done: handled once, however often it comes, and a handler without a result is as good as any", async () => {
    const deliver = consumer(charge);
    expect(await deliver(hello)).toEqual({ kind: "done", how: "executed", result: undefined });
    expect(await deliver(hello)).toEqual({ kind: "done", how: "repeat", result: undefined });
    expect(effects).toEqual(["hello"]);
  });

  test("a repeat gets the first result, for brokers that keep one", async () => {
    let runs = 0;
    const deliver = consumer(() => ({ run: ++runs }));
    await deliver(hello);
    expect(await deliver(hello)).toEqual({ kind: "done", how: "repeat", result: { run: 1 } });
  });

  test("two consumers of one message both run, and so do two namespaces' and two tenants'", async () => {
    const shared = instance();
    await consumer(charge, {}, shared)(hello);
    await consumer(charge, { consumer: "shipping" }, shared)(hello);
    const tenants = consumer(charge, { scope: (m) => m.tenant }, shared);
    await tenants({ ...hello, tenant: "a" });
    await tenants({ ...hello, tenant: "b" });
    await tenants({ ...hello, tenant: "a" });
    expect(effects).toHaveLength(4);
  });

  test("the instance's own scope is that of requests, and not used for messages", async () => {
    const idempotency = createIdempotency({ store: line.store, clock, scope: () => undefined });
    const deliver = handleOnce(
      idempotency,
      { consumer: "billing", key: (m: Message) => m.id, input: "off" },
      charge,
    );
    expect(await deliver(hello)).toMatchObject({ kind: "done" });
    const target = { operation: "consumer:billing", scope: GLOBAL_SCOPE, key: "m1" };
    expect(await idempotency.find(target)).toMatchObject({ state: "completed" });
  });

  test("in flight here: put back at once, not waited for; done afterwards", async () => {
    const end = deferred();
    const deliver = consumer(async (m) => {
      charge(m);
      await end.promise;
    });
    const first = deliver(hello);
    expect(await deliver(hello)).toMatchObject({ kind: "put-back", reason: "in-flight", delayMs: 1_000 });
    end.resolve();
    expect(await first).toMatchObject({ kind: "done" });
    expect(await deliver(hello)).toMatchObject({ kind: "done", how: "repeat" });
    expect(effects).toEqual(["hello"]);
  });

  test("in flight, and its consumer says to wait: the repeat is answered when the first ends", async () => {
    const end = deferred();
    const deliver = consumer(
      async (m) => {
        charge(m);
        await end.promise;
      },
      { onInFlight: { waitMs: 5_000 } },
    );
    const both = [deliver(hello), deliver(hello)];
    await clock.settle();
    end.resolve();
    await clock.advance(1_000);
    expect(await Promise.all(both)).toMatchObject([{ how: "executed" }, { how: "repeat" }]);
    expect(effects).toHaveLength(1);
  });

  test("in flight, waited for, and taken back by its broker meanwhile: put back", async () => {
    const deliver = consumer(() => new Promise<void>(() => undefined), { onInFlight: { waitMs: 60_000 } });
    void deliver(hello);
    const withdrawn = new AbortController();
    const repeat = deliver(hello, { signal: withdrawn.signal });
    await clock.settle();
    withdrawn.abort(new Error("the lock is lost"));
    await clock.settle();
    expect(await repeat).toMatchObject({ kind: "put-back", reason: "withdrawn" });
  });

  test("other content under a known key is a dead letter, also in flight, and changes nothing", async () => {
    const end = deferred();
    const deliver = consumer(async (m) => {
      charge(m);
      await end.promise;
    });
    const first = deliver(hello);
    const other = { ...hello, body: "other" };
    expect(await deliver(other)).toMatchObject({ kind: "dead-letter", reason: "mismatch" });
    end.resolve();
    await first;
    expect(await deliver(other)).toMatchObject({ kind: "dead-letter", reason: "mismatch" });
    expect(await deliver(hello)).toMatchObject({ kind: "done", how: "repeat" });
    expect(effects).toEqual(["hello"]);
  });

  test("not compared: whatever comes under a known key is a repeat", async () => {
    const deliver = consumer(charge, { input: "off" });
    await deliver(hello);
    expect(await deliver({ ...hello, body: "other" })).toMatchObject({ kind: "done", how: "repeat" });
  });
});

describe("a process that is killed", () => {
  test("before its claim, or with the claim's answer on the wire: another runs it after one lease at the latest", async () => {
    line.on("claim", silent);
    void consumer(charge)(hello);
    line.on("claim", undefined);
    expect(await consumer(charge)(hello)).toMatchObject({ kind: "done", how: "executed" });
    expect(effects).toHaveLength(1);
  });

  test("in the middle of its work: in flight for the rest of its lease, then taken over", async () => {
    line.on("extend", silent);
    void consumer(() => new Promise<void>(() => undefined), { leaseMs: 8_000, storeTimeoutMs: 2_000 })(hello);
    await clock.advance(7_400);
    const another = consumer(charge);
    const early = await another(hello, { deliveries: 4 });
    expect(early).toMatchObject({ kind: "put-back", reason: "in-flight", delayMs: 600 });
    await clock.advance(600);
    expect(await another(hello, { deliveries: 5 })).toMatchObject({ kind: "done", how: "executed" });
    expect(effects).toHaveLength(1);
  });

  test("between its completion and its acknowledgement: acknowledged without running", async () => {
    await consumer(charge)(hello);
    expect(await consumer(charge)(hello)).toMatchObject({ kind: "done", how: "repeat" });
    expect(effects).toHaveLength(1);
  });
});

describe("the work that a handler gets", () => {
  test("hears of what the broker takes back, and still of its claim", async () => {
    const end = deferred();
    const seen: Work[] = [];
    const deliver = consumer((_, work) => {
      seen.push(work);
      return end.promise;
    });
    const withdrawn = new AbortController();
    const verdict = deliver(hello, { signal: withdrawn.signal });
    await clock.settle();
    const [work] = seen;
    expect(work?.signal.aborted).toBe(false);
    expect(work?.attempt).toBe(1);
    work?.assertHeld();
    withdrawn.abort();
    expect(work?.signal.aborted).toBe(true);
    end.resolve();
    expect(await verdict).toMatchObject({ kind: "done" });
  });
});

describe("closing", () => {
  test("what comes later is put back for another process, what runs is finished", async () => {
    const end = deferred();
    const idempotency = instance();
    const deliver = consumer(() => end.promise, {}, idempotency);
    const running = deliver(hello);
    await clock.settle();
    const closed = idempotency.close();
    expect(await deliver({ id: "m2", body: "late" })).toMatchObject({ kind: "put-back", reason: "closing" });
    end.resolve();
    expect(await running).toMatchObject({ kind: "done", how: "executed" });
    await closed;
  });

  test("what waits is put back at once", async () => {
    const idempotency = instance();
    const deliver = consumer(
      () => new Promise<void>(() => undefined),
      { onInFlight: { waitMs: 60_000 } },
      idempotency,
    );
    void deliver(hello);
    const waiting = deliver(hello);
    await clock.settle();
    void idempotency.close({ graceMs: 1 });
    await clock.settle();
    expect(await waiting).toMatchObject({ kind: "put-back", reason: "closing" });
  });
});
