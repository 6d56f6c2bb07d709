/**
 * @module
 * Work of three steps, in processes that are killed in the middle of it, on any store: what the next one does again.
 */
import { fork } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, it, type TestContext } from "vitest";
import { requireFreshBuild } from "../servers/faults/app-process.js";
import { type StoreName, storeKinds } from "../servers/faults/apps/stores.mjs";
import type { StepSettings } from "./step-worker.mjs";

/** Long enough that a busy machine renews in time, and waited for twice by whoever finds a step that was begun. */
const LEASE_MS = 5_000;
const workerFile = fileURLToPath(new URL("step-worker.mjs", import.meta.url));

interface Told {
  readonly halted?: string;
  readonly outcome?: { readonly kind: string; readonly result: readonly number[]; readonly attempt: number };
  readonly error?: string;
}

/** Starts a process, waits until it halts or ends, and leaves none behind. */
async function workUntil(settings: StepSettings): Promise<Told & { readonly pid: number | undefined }> {
  const child = fork(workerFile, [JSON.stringify(settings)]);
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const told = await Promise.race([
    new Promise<Told>((resolve) => child.once("message", (message) => resolve(message as Told))),
    exited.then((): Told => ({ error: "the process ended and has said nothing" })),
  ]);
  if (told.outcome === undefined) child.kill("SIGKILL");
  await exited;
  return { ...told, pid: child.pid };
}

export function stepSuite(
  storeName: StoreName,
  address: string,
  guarantees: readonly StepSettings["guarantee"][],
): void {
  beforeAll(async () => {
    requireFreshBuild();
    await (await storeKinds[storeName].outside(address)).close();
  });

  function place({ onTestFinished }: TestContext, guarantee: StepSettings["guarantee"]) {
    const folder = mkdtempSync(join(tmpdir(), "oncekey-steps-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const [key, logPath] = [randomUUID(), join(folder, "effects")];
    const settings = { storeName, address, key, logPath, guarantee, leaseMs: LEASE_MS };
    return {
      work: (haltAt?: string) => workUntil({ ...settings, haltAt }),
      effects: () => readFileSync(logPath, "utf8").trim().split("\n"),
      async rows() {
        const outside = await storeKinds[storeName].outside(address);
        const rows = await outside.rows(key);
        await outside.close();
        return rows.length;
      },
    };
  }

  describe.each(guarantees)("work of steps, %s", (guarantee) => {
    const rows = guarantee === "exactly-once" ? 1 : 0;
    const timeout = 90_000;

    it("that is killed between two steps goes on with the next", { timeout }, async (context) => {
      const { work, effects, rows: written } = place(context, guarantee);
      const killed = await work("after pay");
      expect(killed.halted).toBe("after pay");
      const { outcome, pid } = await work();
      expect(outcome).toMatchObject({ kind: "executed", attempt: 2, result: [killed.pid, killed.pid, pid] });
      expect(effects()).toEqual(["reserve", "pay", "ship"]);
      expect(await written()).toBe(rows);
    });

    it("that is killed again and again does again only the step it was in", { timeout }, async (context) => {
      const { work, effects, rows: written } = place(context, guarantee);
      for (const point of ["in pay", "after ship", "after rows"]) {
        expect(await work(point)).toMatchObject({ halted: point });
      }
      const last = await work();
      expect(last).toMatchObject({ outcome: { kind: "executed", attempt: 4 } });
      expect(await work()).toMatchObject({ outcome: { kind: "replayed", result: last.outcome?.result } });
      expect(effects()).toEqual(["reserve", "pay", "pay", "ship"]);
      expect(await written()).toBe(rows);
    });
  });
}
