/**
 * What may happen to one occurrence, on several instances.
 *
 * Crash points: before the claim · in the work · after the effect, before the completion · after the completion · in the pause after a
 * failure · with the turn claimed (`overlap.test.ts`). Interleavings: all fire at once · one fires while another runs, and after it has
 * ended · the runner fails and all want to try again, at the same moment · windows, outages and clocks (`windows.test.ts`).
 */
import { OncekeyError } from "oncekey";
import { describe, expect, it, vi } from "vitest";
import { answerSwallowed, silent } from "../core/processes.js";
import { fleet, HOUR_MS, LEASE_MS, START_MS } from "./fleet.js";

describe("an occurrence that four instances fire", () => {
  it("runs on one of them, and the others hear of it", async () => {
    const { clock, starts, start } = fleet();
    const instances = [start(), start(), start(), start()];
    const fired = Promise.all(instances.map(({ fire }) => fire()));
    await clock.settle();
    expect(starts).toHaveLength(1);
    expect(starts[0]?.plannedAt).toBe(new Date(START_MS).toISOString());
    starts[0]?.resolve();
    await clock.advance(1_000);
    await fired;
    expect(instances.flatMap(({ ends }) => ends()).sort()).toEqual([
      ...["elsewhere", "elsewhere", "elsewhere", "executed"],
    ]);
    expect(starts).toHaveLength(1);
  });

  it("does not run again where it is fired late, because a timer was late or a clock is behind", async () => {
    const { clock, starts, start } = fleet();
    const quick = { run: () => undefined };
    await start(quick).fire();
    await clock.advance(20 * 60_000);
    const late = start(quick);
    await late.fire();
    expect(late.ends()).toEqual(["elsewhere"]);
    expect(starts).toHaveLength(1);
  });

  it("gives the work what every work has, and the planned instant", async () => {
    const { clock, starts, start } = fleet();
    void start().fire();
    await clock.settle();
    const work = starts[0]?.work;
    expect(work?.plannedAt).toEqual(new Date(START_MS));
    expect(work).toMatchObject({ attempt: 1, guarantee: "at-least-once", protected: true });
    expect(work?.signal.aborted).toBe(false);
    expect(() => work?.assertHeld()).not.toThrow();
    expect(work?.downstreamKey("mail")).toHaveLength(43);
  });
});

describe("a runner that crashes", () => {
  it("in its work: another runs it again within the window, as attempt 2", async () => {
    const { clock, starts, start } = fleet();
    const [first, second, third] = [start(), start(), start()];
    for (const { fire } of [first, second, third]) void fire();
    await clock.settle();
    first.crash();
    await clock.advance(LEASE_MS - 1);
    expect(starts).toHaveLength(1);
    await clock.advance(1_000);
    expect(starts).toHaveLength(2);
    expect(starts[1]?.work.attempt).toBe(2);
    starts[1]?.resolve();
    await clock.advance(1_000);
    expect([...second.ends(), ...third.ends()].sort()).toEqual(["elsewhere", "executed"]);
    expect(starts).toHaveLength(2);
  });

  it("before its claim has landed: another runs it at once", async () => {
    const { clock, starts, start } = fleet();
    const [dead, alive] = [start(), start()];
    dead.crash();
    void dead.fire();
    void alive.fire();
    await clock.settle();
    expect(starts.map(({ instance }) => instance)).toEqual([1]);
  });

  it("after the effect and before its completion: it runs again, as at-least-once says", async () => {
    const { clock, starts, start } = fleet();
    const [first, second] = [start(), start()];
    for (const { fire } of [first, second]) void fire();
    await clock.settle();
    first.crash();
    starts[0]?.resolve();
    await clock.advance(LEASE_MS + 1_000);
    expect(starts.map(({ instance }) => instance)).toEqual([0, 1]);
  });

  it("after its completion has landed: nobody runs it again", async () => {
    const { clock, starts, start } = fleet();
    const [first, second] = [start(), start()];
    for (const { fire } of [first, second]) void fire();
    await clock.settle();
    first.wire.on("complete", answerSwallowed);
    first.wire.on("extend", silent);
    starts[0]?.resolve();
    await clock.advance(10 * LEASE_MS);
    expect(second.ends()).toEqual(["elsewhere"]);
    expect(starts).toHaveLength(1);
  });

  it("every time: not more often than maxAttempts says, and then all are told", async () => {
    const { clock, starts, start } = fleet();
    const instances = [start(), start(), start(), start()];
    for (const { fire } of instances) void fire();
    for (let crashes = 0; crashes < 3; crashes++) {
      await clock.advance(LEASE_MS + 1_000);
      const { instance } = starts.at(-1) ?? { instance: -1 };
      instances[instance]?.crash();
    }
    await clock.advance(HOUR_MS);
    expect(starts).toHaveLength(3);
    const survivor = instances.find((_, index) => !starts.some(({ instance }) => instance === index));
    expect(survivor?.events.of("occurrence")).toMatchObject([
      { end: "given-up", cause: { code: "ATTEMPTS_EXHAUSTED" } },
    ]);
  });
});

describe("work that fails", () => {
  it("is tried again after a pause that doubles, by whoever comes first, and then given up", async () => {
    const { clock, starts, start } = fleet();
    const failing = { retryDelayMs: 10_000, run: () => Promise.reject(new Error("no paper")) };
    const instances = [start(failing), start(failing), start(failing)];
    const fired = Promise.all(instances.map(({ fire }) => fire()));
    await clock.advance(9_900);
    expect(starts).toHaveLength(1);
    await clock.advance(1_000);
    expect(starts).toHaveLength(2);
    await clock.advance(18_000);
    expect(starts).toHaveLength(2);
    await clock.advance(2_000);
    expect(starts.map(({ work }) => work.attempt)).toEqual([1, 2, 3]);
    await clock.advance(HOUR_MS);
    await fired;
    expect(starts).toHaveLength(3);
    expect(instances.map(({ ends }) => ends())).toEqual([["given-up"], ["given-up"], ["given-up"]]);
  });

  it("is tried again by the others if the instance that saw it fail dies in the pause", async () => {
    const { clock, starts, start } = fleet();
    const [first, second] = [start({ retryDelayMs: 10_000 }), start({ retryDelayMs: 10_000 })];
    for (const { fire } of [first, second]) void fire();
    await clock.settle();
    starts[0]?.reject(new Error("no paper"));
    await clock.settle();
    first.crash();
    await clock.advance(9_000);
    expect(starts).toHaveLength(1);
    await clock.advance(2_000);
    expect(starts.map(({ instance }) => instance)).toEqual([0, 1]);
  });

  it("is told to onError, each attempt where it was made, and the end", async () => {
    const { clock, start } = fleet();
    const onError = vi.fn();
    const error = new Error("no paper");
    void start({ maxAttempts: 2, onError, run: () => Promise.reject(error) }).fire();
    await clock.advance(HOUR_MS);
    const told = { job: "report", plannedAt: new Date(START_MS) };
    expect(onError.mock.calls).toEqual([
      [error, { ...told, attempt: 1, givenUp: false }],
      [error, { ...told, attempt: 2, givenUp: true }],
    ]);
  });

  it("never throws into the scheduler, whatever onError does", async () => {
    const { clock, start } = fleet();
    const run = () => {
      throw new Error("no paper");
    };
    const onError = () => {
      throw new Error("no ink");
    };
    const fired = start({ maxAttempts: 1, onError, run }).fire();
    await clock.advance(1_000);
    await expect(fired).resolves.toBeUndefined();
  });

  it("throws into the scheduler where onError says so, and only when it is given up", async () => {
    const { clock, start } = fleet();
    const fired = start({
      maxAttempts: 2,
      onError: "throw",
      run: () => Promise.reject(new Error("no paper")),
    });
    const outcome = expect(fired.fire()).rejects.toThrow("no paper");
    await clock.advance(HOUR_MS);
    await outcome;
  });

  it("with an error of this package is work that failed all the same, not a refusal of its occurrence", async () => {
    const { clock, start } = fleet();
    const onError = vi.fn();
    const run = () => Promise.reject(new OncekeyError("OUTCOME_UNKNOWN", "of something inside"));
    void start({ maxAttempts: 2, onError, run }).fire();
    await clock.advance(HOUR_MS);
    expect(onError.mock.calls.map(([, { attempt, givenUp }]) => [attempt, givenUp])).toEqual([
      [1, false],
      [2, true],
    ]);
  });
});

describe("attempts of several instances", () => {
  it("keep the pause also where one fires late and finds the key free", async () => {
    const { clock, starts, start } = fleet();
    void start({ retryDelayMs: 10_000 }).fire();
    await clock.settle();
    starts[0]?.reject(new Error("no paper"));
    await clock.advance(3_000);
    void start({ retryDelayMs: 10_000 }).fire();
    await clock.advance(5_000);
    expect(starts).toHaveLength(1);
    await clock.advance(10_000);
    expect(starts).toHaveLength(2);
  });

  it("end with the window, also where the pause is kept under a claim", async () => {
    const { clock, starts, start } = fleet();
    const options = { retryDelayMs: 60_000, windowMs: 50_000 };
    const first = start(options);
    void first.fire();
    await clock.settle();
    starts[0]?.reject(new Error("no paper"));
    await clock.advance(3_000);
    const second = start(options);
    void second.fire();
    await clock.advance(HOUR_MS / 2);
    expect(starts).toHaveLength(1);
    expect([first.ends(), second.ends()]).toEqual([["given-up"], ["given-up"]]);
  });
});
