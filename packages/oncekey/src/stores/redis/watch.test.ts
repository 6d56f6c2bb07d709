import { describe, expect, it } from "vitest";
import type { RecordKey } from "../../core/record.js";
import type { KeyStatus } from "../../core/store.js";
import { createWatchers } from "./watch.js";

const key = (name: string) => name as RecordKey;
const turn = () => new Promise((resolve) => setImmediate(resolve));

function setUp(states: Record<string, KeyStatus["state"]> = {}) {
  const log: string[] = [];
  const confirmations: (() => void)[] = [];
  const watchers = createWatchers({
    subscribe: (name) => {
      log.push(`subscribe ${name}`);
      return new Promise((resolve) => confirmations.push(resolve));
    },
    unsubscribe: (name) => void log.push(`unsubscribe ${name}`),
    status: async (keys) => {
      log.push(`read ${keys.join()}`);
      return keys.map((name) => ({ state: states[name] ?? "claimed", holder: undefined }));
    },
  });
  const confirm = async () => {
    for (const one of confirmations.splice(0)) one();
    await turn();
    await turn();
  };
  return { watchers, log, confirm };
}

describe("watching", () => {
  it("one subscription per key, from the first watch to the last", async () => {
    const { watchers, log, confirm } = setUp();
    const [one, two] = [watchers.watch(key("a"), () => undefined), watchers.watch(key("a"), () => undefined)];
    await confirm();
    one.close();
    one.close();
    two.close();
    watchers.watch(key("a"), () => undefined);
    expect(log).toEqual(["subscribe a", "read a", "unsubscribe a", "subscribe a"]);
  });

  it("what changed before the server had confirmed is found by one reading of all that were missed", async () => {
    const { watchers, log, confirm } = setUp({ done: "completed" });
    const woken: string[] = [];
    watchers.watch(key("running"), () => woken.push("running"));
    watchers.watch(key("done"), () => woken.push("done"));
    watchers.watch(key("left"), () => woken.push("left")).close();
    await confirm();
    expect(woken).toEqual(["done"]);
    expect(log.filter((line) => line.startsWith("read"))).toEqual(["read running,done"]);
  });

  it("after a time away all keys are read once", async () => {
    const { watchers, log, confirm } = setUp({ b: "released" });
    const woken: string[] = [];
    for (const name of ["a", "b"]) watchers.watch(key(name), () => woken.push(name));
    await confirm();
    woken.length = 0;
    log.length = 0;
    watchers.missed();
    watchers.missed();
    await turn();
    await turn();
    expect([log, woken]).toEqual([["read a,b"], ["b"]]);
  });

  it("a waiter that throws keeps nobody asleep", async () => {
    const { watchers } = setUp();
    let woken = 0;
    watchers.watch(key("a"), () => {
      throw new Error("its own fault");
    });
    watchers.watch(key("a"), () => {
      woken += 1;
    });
    watchers.published(key("a"));
    watchers.published(key("b"));
    expect(woken).toBe(1);
  });

  it("registrations are bounded, and one too many is no error", () => {
    const { watchers, log } = setUp();
    for (let count = 0; count < 10_000; count += 1) watchers.watch(key("a"), () => undefined);
    watchers.watch(key("b"), () => undefined).close();
    expect(log).toEqual(["subscribe a"]);
  });
});
