/**
 * Several real processes on one file, some of which are killed. They run the built package.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import {
  claimOf,
  completionOf,
  keyOf,
  openConnection,
  openStore,
  resultOf,
  temporaryFile,
  transactionOf,
} from "./sqlite-fixture.js";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

beforeAll(() => {
  const source = here("../../src/stores/sqlite");
  const files = readdirSync(source).filter((name) => !name.endsWith(".test.ts"));
  const changedAtMs = Math.max(...files.map((name) => statSync(join(source, name)).mtimeMs));
  const build = here("../../dist/build.tsbuildinfo");
  if (!existsSync(build) || statSync(build).mtimeMs < changedAtMs) {
    throw new Error(
      "The other processes run the built package, which is older than its source: npm run build",
    );
  }
});

interface Answer {
  readonly id?: number;
  readonly value?: unknown;
  readonly error?: string;
  readonly done?: string;
}

/** A process with a store on `path`, killed with the test. */
async function startWorker(path: string) {
  const child: ChildProcess = fork(here("workers/sqlite-worker.mjs"), [path], { serialization: "advanced" });
  const exited = once(child, "exit");
  const pending = new Map<number, { resolve: (value: never) => void; reject: (error: Error) => void }>();
  const done: string[] = [];
  let last = 0;
  child.on("message", ({ id, value, error, done: key }: Answer) => {
    if (key !== undefined) done.push(key);
    if (id === undefined) return;
    if (error === undefined) pending.get(id)?.resolve(value as never);
    else pending.get(id)?.reject(new Error(error));
  });
  const kill = async () => {
    child.kill("SIGKILL");
    await exited;
  };
  onTestFinished(kill);
  const died = exited.then(() => Promise.reject(new Error("The process ended before it was ready")));
  await Promise.race([once(child, "message"), died]);
  died.catch(() => undefined);
  return {
    done,
    kill,
    call<T>(call: string, ...args: unknown[]): Promise<T> {
      const id = last++;
      child.send({ id, call, args });
      return new Promise<T>((resolve, reject) => pending.set(id, { resolve, reject }));
    },
  };
}

/** A file with a table of the application's. */
async function fileWithPayments() {
  const path = temporaryFile();
  const application = openConnection(path);
  application.exec("PRAGMA journal_mode = wal");
  application.exec("CREATE TABLE payments (claim TEXT NOT NULL)");
  return { path, payments: () => application.prepare("SELECT claim FROM payments").all([]).length };
}

describe("several processes on one file", () => {
  it("have exactly one winner for each key, of 4 × 64 concurrent claims, round after round", async () => {
    const path = temporaryFile();
    const workers = await Promise.all(Array.from({ length: 4 }, () => startWorker(path)));
    for (let round = 0; round < 10; round++) {
      const claims = () => Array.from({ length: 64 }, () => claimOf(`round-${round}`));
      const kinds = (
        await Promise.all(workers.map((worker) => worker.call<string[]>("claimAll", claims())))
      ).flat();
      expect(kinds.filter((kind) => kind === "claimed")).toHaveLength(1);
      expect(kinds.filter((kind) => kind === "in-flight")).toHaveLength(255);
    }
  });

  it("wake each other's waiters", async () => {
    const path = temporaryFile();
    const [store, worker] = [openStore(path), await startWorker(path)];
    const claim = claimOf("a");
    await worker.call("claim", claim);
    await store.claim(claimOf("warm"));
    const wake = vi.fn();
    store.watch?.(claim.key, wake);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(wake).not.toHaveBeenCalled();
    await worker.call("complete", completionOf(claim));
    await vi.waitFor(() => expect(wake).toHaveBeenCalledTimes(1), 2_000);
  });

  it("do not block each other's event loop with an open transaction, and lose no claim", async () => {
    const { path, payments } = await fileWithPayments();
    const [holder, other] = [await startWorker(path), await startWorker(path)];
    const [claim, waiting] = [claimOf("a"), claimOf("b")];
    await holder.call("claim", claim);
    await holder.call("openTransaction", transactionOf(claim, 60_000));
    const counted = other.call<{ kind: string; turns: number }>("claimCountingTurns", waiting);
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(await holder.call("commit", resultOf("paid"))).toEqual({ kind: "committed" });
    const { kind, turns } = await counted;
    expect(kind).toBe("claimed");
    expect(turns).toBeGreaterThan(5);
    expect(payments()).toBe(1);
  });
});

describe("a process that is killed", () => {
  it("inside a transaction leaves no row and no completion, and blocks nobody", async () => {
    const { path, payments } = await fileWithPayments();
    const worker = await startWorker(path);
    const claim = claimOf("a");
    await worker.call("claim", claim);
    await worker.call("openTransaction", transactionOf(claim, 60_000));
    await worker.kill();
    const store = openStore(path);
    expect(await store.claim(claimOf("a"))).toMatchObject({ kind: "in-flight", holder: claim.token });
    expect(payments()).toBe(0);
    const session = store.begin?.(transactionOf(claim));
    await session?.handle.run("INSERT INTO payments (claim) VALUES ('again')");
    expect(await session?.commit(resultOf("paid"), "everything")).toEqual({ kind: "committed" });
    expect(payments()).toBe(1);
  });

  it("while it works loses nothing that it was told, and leaves a log that the next process reads", async () => {
    const path = temporaryFile();
    const worker = await startWorker(path);
    const requests = Array.from({ length: 5_000 }, (_, index) => claimOf(`k${index}`));
    worker.call("work", requests, resultOf("paid")).catch(() => undefined);
    await vi.waitFor(() => expect(worker.done.length).toBeGreaterThan(100), 10_000);
    await worker.kill();
    expect(existsSync(`${path}-wal`)).toBe(true);
    const store = openStore(path);
    for (const key of worker.done) {
      expect(await store.find(key as never)).toMatchObject({ state: "completed" });
    }
    expect(worker.done).not.toContain(keyOf("k4999"));
    expect(openConnection(path).prepare("PRAGMA integrity_check").all([])).toEqual([
      { integrity_check: "ok" },
    ]);
  });
});
