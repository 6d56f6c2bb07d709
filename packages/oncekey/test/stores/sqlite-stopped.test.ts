/**
 * A real process that is stopped (SIGSTOP) in the middle of its work for longer than its lease, and goes on later.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { createIdempotency } from "oncekey";
import { describe, expect, it, onTestFinished } from "vitest";
import { openStore, temporaryFile } from "./sqlite-fixture.js";

const LEASE_MS = 1_000;
const CALL = { operation: "charge", key: "k", input: 1 } as const;

/** A process in the middle of its work, stopped until its lease is over. */
async function stoppedProcess(path: string) {
  const worker = fileURLToPath(new URL("workers/run-worker.mjs", import.meta.url));
  const child = fork(worker, [path]);
  onTestFinished(() => void child.kill("SIGKILL"));
  const heard: Record<string, unknown> = {};
  child.on("message", (message) => Object.assign(heard, message));
  await once(child, "message");
  child.kill("SIGSTOP");
  await new Promise((resolve) => setTimeout(resolve, LEASE_MS + 200));
  return {
    /** It ends its work as soon as it goes on. */
    async goOn(how: "return" | "throw") {
      child.send(how);
      child.kill("SIGCONT");
      while (!("outcome" in heard) && !("error" in heard)) await once(child, "message");
      return heard;
    },
  };
}

const otherProcess = (path: string) =>
  createIdempotency({ store: openStore(path), scope: "global", leaseMs: LEASE_MS });

describe("a process that was stopped past its lease, and another took over,", () => {
  it("learns at once that it has lost its claim, and gets what the other has completed", async () => {
    const path = temporaryFile();
    const stopped = await stoppedProcess(path);
    const other = otherProcess(path);
    expect(await other.runWithOutcome(CALL, () => "done")).toMatchObject({ kind: "executed", attempt: 2 });
    const { asserted, aborted, outcome } = await stopped.goOn("return");
    expect([asserted, aborted]).toEqual(["LEASE_LOST", true]);
    expect(outcome).toMatchObject({ kind: "replayed", result: "done" });
    expect(await other.run(CALL, () => "again")).toBe("done");
  });

  it("frees nothing by throwing: nobody runs beside the other", async () => {
    const path = temporaryFile();
    const stopped = await stoppedProcess(path);
    const other = otherProcess(path);
    let end = (): void => {};
    let begun = (): void => {};
    const started = new Promise<void>((resolve) => (begun = resolve));
    const running = other.runWithOutcome(CALL, () => {
      begun();
      return new Promise((resolve) => (end = () => resolve("done")));
    });
    await started;
    expect(await stopped.goOn("throw")).toMatchObject({ asserted: "LEASE_LOST", error: "too late" });
    const third = otherProcess(path).runWithOutcome(CALL, () => "beside it");
    await new Promise((resolve) => setTimeout(resolve, 100));
    end();
    expect(await running).toMatchObject({ kind: "executed", result: "done" });
    expect(await third).toMatchObject({ kind: "replayed", result: "done" });
  });
});
