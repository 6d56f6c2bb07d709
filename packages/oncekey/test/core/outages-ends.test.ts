import { describe, expect, it } from "vitest";
import { OncekeyError } from "../../src/core/errors.js";
import { codeOf, deferred, firstly, keyOf, refused, silent, world } from "./processes.js";

const LEASE_MS = 30_000;

describe("a completion that does not land", () => {
  it("gives the caller its success, keeps the key, and is tried again until it lands", async () => {
    const { process, wire, clock, another } = world();
    wire.on("complete", refused);
    const call = process.run({}, () => "done");
    await clock.settle();
    expect(await call).toEqual({ kind: "executed", result: "done", attempt: 1 });
    expect(process.of("completion-failed")).toMatchObject([{ willRetry: true }]);
    expect(process.of("finished")).toMatchObject([{ outcome: "executed" }]);
    // The store answers renewals, so nobody takes the key over however long it takes.
    await clock.advance(3 * LEASE_MS);
    const elsewhere = codeOf(another({ onInFlight: "reject" }).run({}, () => "ran"));
    await clock.settle();
    expect(await elsewhere).toBe("IN_FLIGHT");
    expect(await process.run({}, () => "ran")).toMatchObject({ kind: "replayed", result: "done" });
    expect(await codeOf(process.run({ input: 2 }, () => "ran"))).toBe("KEY_REUSED");
    wire.on("complete", undefined);
    await clock.advance(5_000);
    expect(process.of("completed")).toMatchObject([{ how: "late" }]);
    expect(await another().run({}, () => "ran")).toMatchObject({ kind: "replayed", result: "done" });
  });

  it("is answered within storeTimeoutMs when the store hangs", async () => {
    const { process, wire, clock } = world();
    wire.on("complete", silent);
    const call = process.run({}, () => "done");
    await clock.advance(2_000);
    expect(await call).toMatchObject({ kind: "executed", result: "done" });
  });

  it("is lost after completionRetryMs, and an event says so", async () => {
    const { process, wire, clock } = world({ completionRetryMs: 60_000 });
    wire.on("complete", refused);
    const call = process.run({}, () => "done");
    await clock.settle();
    await call;
    await clock.advance(59_000);
    expect(process.of("completion-lost")).toEqual([]);
    await clock.advance(10_000);
    expect(process.of("completion-lost")).toMatchObject([{ reason: "out-of-time" }]);
    const tries = wire.count("complete");
    await clock.advance(60_000);
    expect(wire.count("complete")).toBe(tries);
  });

  it("is lost at once where too many wait already", async () => {
    const { process, wire, clock } = world({}, { maxPendingCompletions: 1 });
    wire.on("complete", refused);
    const calls = [1, 2].map((key) => process.run({ key }, () => "done"));
    await clock.settle();
    expect((await Promise.all(calls)).map(({ kind }) => kind)).toEqual(["executed", "executed"]);
    expect(process.of("completion-failed").map(({ willRetry }) => willRetry)).toEqual([true, false]);
    expect(process.of("completion-lost")).toMatchObject([{ reason: "out-of-room" }]);
  });

  it("is told nobody as completed when another token has the key by then", async () => {
    const { process, wire, clock, another } = world();
    wire.on(["complete", "extend"], refused);
    const call = process.run({}, () => "first");
    await clock.settle();
    await call;
    await clock.advance(LEASE_MS);
    const work = deferred<string>();
    wire.on("extend", undefined);
    const other = another();
    const second = other.run({}, () => work.promise);
    await clock.settle();
    wire.on("complete", undefined);
    await clock.advance(5_000);
    expect(process.of("completed")).toEqual([]);
    expect(process.of("completion-lost")).toMatchObject([{ reason: "replaced" }]);
    work.resolve("second");
    await clock.settle();
    expect(await second).toMatchObject({ result: "second" });
    expect(await process.run({}, () => "third")).toMatchObject({ kind: "replayed", result: "second" });
  });

  it("finds no room for a record that was lost: the success stands, and it is tried again", async () => {
    const { process, wire, clock } = world();
    wire.on(
      "complete",
      firstly(2, () => Promise.resolve({ kind: "full" })),
    );
    const call = process.run({}, () => "done");
    await clock.settle();
    expect(await call).toMatchObject({ kind: "executed", result: "done" });
    await clock.advance(1_000);
    expect(process.of("completed")).toMatchObject([{ how: "late" }]);
  });

  it("is lost, not landed, when its record cannot be read", async () => {
    const { process, wire, clock } = world();
    wire.on("complete", () => Promise.reject(new OncekeyError("RECORD_UNREADABLE", "damaged")));
    const call = process.run({}, () => "done");
    await clock.advance(1_000);
    expect(await call).toMatchObject({ result: "done" });
    expect(process.of("completed")).toEqual([]);
    expect(process.of("completion-lost")).toMatchObject([{ reason: "unreadable" }]);
  });
});

describe("a release that does not land", () => {
  it("lets the work's own error through and is tried again", async () => {
    const { process, wire, clock } = world();
    wire.on("release", refused);
    const call = codeOf(
      process.run({}, () => {
        throw new Error("declined");
      }),
    );
    await clock.settle();
    expect(await call).toEqual(new Error("declined"));
    expect((await wire.store.find(keyOf()))?.state).toBe("claimed");
    wire.on("release", undefined);
    await clock.advance(1_000);
    expect(await wire.store.find(keyOf())).toBeUndefined();
  });

  it("is tried again also under at-most-once, where the outcome becomes unknown", async () => {
    const { process, wire, clock } = world({ guarantee: "at-most-once" });
    wire.on("markUnknown", silent);
    const call = codeOf(
      process.run({}, () => {
        throw new Error("declined");
      }),
    );
    await clock.advance(2_000);
    expect(await call).toEqual(new Error("declined"));
    wire.on("markUnknown", undefined);
    await clock.advance(1_000);
    expect((await wire.store.find(keyOf()))?.state).toBe("unknown");
  });
});
