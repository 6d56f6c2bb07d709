/**
 * Steps of work whose process dies, stands still, or loses its claim; and what its successor finds.
 */
import { describe, expect, it } from "vitest";
import { stepKeyOf } from "../../src/core/key.js";
import type { Policy } from "../../src/core/policy.js";
import type { ExtendRequest } from "../../src/core/store.js";
import type { Work } from "../../src/core/work.js";
import {
  codeOf,
  type Deferred,
  declined,
  deferred,
  gate,
  type Interference,
  keyOf,
  silent,
  wire,
  world,
} from "./processes.js";

const LEASE_MS = 30_000;
const PAY = stepKeyOf(keyOf(), "pay");

/** Lets calls for one record pass and loses the others. */
const onlyFor =
  (key: string): Interference =>
  (request, next) =>
    (request as ExtendRequest).key === key ? next() : silent(request, next);

/** Work of one step that ends when the test says so, and another after it. */
function paying(log: string[], name: string, end: Deferred<string>) {
  return async ({ step }: Work): Promise<string> => {
    const paid = await step("pay", async () => {
      log.push(`${name} pays`);
      return end.promise;
    });
    await step("ship", () => void log.push(`${name} ships`));
    return paid;
  };
}

/** A process that is in its first step and whose line loses what `lose` says, and a successor on a good one. */
async function inFirstStep(lose: (line: ReturnType<typeof wire>) => void, policy: Policy = {}) {
  const place = world({ onInFlight: { waitMs: 10 * LEASE_MS }, ...policy });
  const cutOff = wire(place.wire.store);
  const log: string[] = [];
  const [formerEnd, presentEnd] = [deferred<string>(), deferred<string>()];
  const former = codeOf(place.another({}, cutOff).run({}, paying(log, "former", formerEnd)));
  await place.clock.settle();
  lose(cutOff);
  const succeed = (more: Policy = {}) =>
    codeOf(place.another(more).run({}, paying(log, "present", presentEnd)));
  return { place, cutOff, log, former, formerEnd, presentEnd, succeed };
}

const dead = (line: ReturnType<typeof wire>) => line.all(silent);
const lostItsWork = (line: ReturnType<typeof wire>) => line.on("extend", onlyFor(PAY));

describe("a process that dies", () => {
  it("in a step: the step's claim lapses by itself, and its successor does the step again", async () => {
    const { place, log, succeed, presentEnd } = await inFirstStep(dead);
    const present = succeed();
    await place.clock.advance(LEASE_MS);
    expect(log).toEqual(["former pays", "present pays"]);
    presentEnd.resolve("paid");
    expect(await present).toMatchObject({ kind: "executed", result: "paid", attempt: 2 });
    expect((await place.wire.store.find(PAY))?.attempt).toBe(2);
  });

  it("in a step that began late: its successor waits for as long as that step's lease", async () => {
    const place = world({ onInFlight: { waitMs: 10 * LEASE_MS } });
    const cutOff = wire(place.wire.store);
    // Of the work no renewal arrives; the step is claimed 20 seconds after it, and then nothing arrives at all.
    cutOff.on("extend", silent);
    const [ready, starts] = [deferred(), [] as string[]];
    const work = (name: string) => async (context: Work) => {
      if (name === "former") await ready.promise;
      return context.step("pay", () => {
        starts.push(name);
        return name === "former" ? new Promise<string>(() => undefined) : name;
      });
    };
    void place.another({}, cutOff).run({}, work("former"));
    await place.clock.advance(20_000);
    ready.resolve();
    await place.clock.settle();
    dead(cutOff);
    const present = codeOf(place.process.run({}, work("present")));
    await place.clock.advance(LEASE_MS - 1);
    expect(starts).toEqual(["former"]);
    await place.clock.advance(1);
    expect(await present).toMatchObject({ kind: "executed", result: "present", attempt: 2 });
  });

  it("after a step: its successor has the result and begins with the next", async () => {
    const place = world();
    const cutOff = wire(place.wire.store);
    const steps: string[] = [];
    const work = (name: string, dies: boolean) => async (context: Work) => {
      const paid = await context.step("pay", () => `${name} paid`);
      if (dies) dead(cutOff);
      await context.step("ship", () => void steps.push(`${name} ships`));
      return paid;
    };
    void place
      .another({}, cutOff)
      .run({}, work("former", true))
      .catch(() => undefined);
    await place.clock.advance(LEASE_MS);
    expect(await codeOf(place.process.run({}, work("present", false)))).toMatchObject({
      result: "former paid",
      attempt: 2,
    });
    expect(steps).toEqual(["present ships"]);
  });

  it("in a step under at-most-once: nobody does it again until somebody has said what became of it", async () => {
    const notDone = () => ({ kind: "not-done" }) as const;
    const policy = { guarantee: "at-most-once", onLapsed: notDone } as const;
    const { place, log, succeed, presentEnd } = await inFirstStep(dead, policy);
    await place.clock.advance(3 * LEASE_MS);
    expect(await succeed()).toBe("STEP_REFUSED");
    const record = await place.wire.store.find(PAY);
    expect(record?.state).toBe("unknown");
    if (record === undefined) return;
    const { key, version } = record;
    const verdict = { kind: "not-performed" } as const;
    const token = place.process.engine.mint();
    await place.wire.store.resolve({ key, version, token, verdict, evenIfLive: false });
    presentEnd.resolve("paid");
    expect(await succeed()).toMatchObject({ kind: "executed", result: "paid" });
    expect(log).toEqual(["former pays", "present pays", "present ships"]);
  });
});

describe("a process that lives and has lost its work", () => {
  it("ends the step it is in: its successor waits for that and takes the result; it begins no other", async () => {
    const { place, log, former, formerEnd, succeed } = await inFirstStep(lostItsWork);
    await place.clock.advance(LEASE_MS);
    const present = succeed();
    await place.clock.advance(2 * LEASE_MS);
    formerEnd.resolve("paid by the former");
    await place.clock.settle();
    expect(await former).toBe("LEASE_LOST");
    expect(await present).toMatchObject({ kind: "executed", result: "paid by the former", attempt: 2 });
    expect(log).toEqual(["former pays", "present ships"]);
  });

  it("and fails in its step leaves the step to its successor", async () => {
    const { place, log, former, formerEnd, presentEnd, succeed } = await inFirstStep(lostItsWork);
    await place.clock.advance(LEASE_MS);
    const present = succeed();
    presentEnd.resolve("paid");
    await place.clock.advance(1_000);
    formerEnd.reject(declined);
    await place.clock.settle();
    expect(await former).toBe(declined);
    expect(await present).toMatchObject({ kind: "executed", result: "paid" });
    expect(log).toEqual(["former pays", "present pays", "present ships"]);
  });

  it("and its step, which another has done meanwhile: what is on record counts for both", async () => {
    const { place, cutOff, former, formerEnd, presentEnd, succeed, log } = await inFirstStep((line) =>
      line.on("extend", silent),
    );
    await place.clock.advance(LEASE_MS);
    const present = succeed();
    presentEnd.resolve("paid by the present");
    await place.clock.settle();
    expect(await present).toMatchObject({ kind: "executed", result: "paid by the present" });
    cutOff.on("extend", undefined);
    formerEnd.resolve("paid by the former");
    await place.clock.settle();
    expect(await former).toBe("LEASE_LOST");
    expect(log).toEqual(["former pays", "present pays", "present ships"]);
    const repeat = await place.process.run({}, () => "again");
    expect(repeat).toMatchObject({ kind: "replayed", result: "paid by the present" });
  });

  it("while a step was being claimed does not start it, and leaves it free", async () => {
    const place = world();
    const cutOff = wire(place.wire.store);
    const starts: string[] = [];
    const standing = gate();
    cutOff.on("extend", silent);
    const former = codeOf(
      place.another({ storeTimeoutMs: 7_000 }, cutOff).run({}, async ({ step }) => {
        await clockReaches(25_000);
        cutOff.on("claim", standing.interference);
        return step("pay", () => starts.push("former"));
      }),
    );
    const clockReaches = (ms: number) => new Promise<void>((done) => void place.clock.setTimer(done, ms));
    await place.clock.advance(25_000);
    expect(standing.waiting()).toBe(1);
    await place.clock.advance(3_000);
    standing.open();
    await place.clock.settle();
    expect(await former).toBe("LEASE_LOST");
    expect(starts).toEqual([]);
    expect(await place.wire.store.find(PAY)).toBeUndefined();
  });
});

describe("how long a step may take", () => {
  it("ends with its work's longest time, whenever it began: then it is not renewed any more", async () => {
    const { clock, process, wire } = world({ maxRunMs: 2 * LEASE_MS });
    const call = process.run({}, async ({ step }) => {
      await new Promise<void>((late) => void clock.setTimer(late, LEASE_MS));
      return step("pay", () => new Promise(() => undefined));
    });
    call.catch(() => undefined);
    await clock.advance(2 * LEASE_MS);
    expect((await wire.store.find(PAY))?.lapsed).toBe(false);
    await clock.advance(LEASE_MS);
    expect((await wire.store.find(PAY))?.lapsed).toBe(true);
  });

  it("and how long it is waited for, with the longest time of the work that waits", async () => {
    const { place, log, succeed } = await inFirstStep(lostItsWork);
    await place.clock.advance(LEASE_MS);
    const present = succeed({ maxRunMs: LEASE_MS });
    await place.clock.advance(LEASE_MS);
    expect(await present).toBe("STEP_IN_FLIGHT");
    expect(log).toEqual(["former pays"]);
  });

  it("or with its claim", async () => {
    const { place, log, succeed } = await inFirstStep(lostItsWork);
    await place.clock.advance(LEASE_MS);
    place.wire.on("extend", onlyFor(PAY));
    const present = succeed();
    await place.clock.advance(LEASE_MS);
    expect(await present).toBe("LEASE_LOST");
    expect(log).toEqual(["former pays"]);
  });
});
