/**
 * @module test/servers/faults/subject
 *
 * One store under these tests: where it is, which guarantees it gives, and a place in which its callers, their log and their rows are
 * looked at together.
 */
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Guarantee, Policy } from "oncekey";
import { expect, type TestContext } from "vitest";
import { type App, startApp } from "./app-process.js";
import { createCaller } from "./apps/caller.mjs";
import { effectLog, type Line } from "./apps/effect-log.mjs";
import { type Outsider, type StoreName, storeKinds } from "./apps/stores.mjs";

export interface Subject {
  readonly storeName: StoreName;
  /** Where a place has its records: the same for all, or one of its own. */
  readonly address: () => string;
  readonly guarantees: readonly Guarantee[];
  /** One process that writes keeps all others from writing until it has ended: SQLite's transactions. */
  readonly writersExclude: boolean;
}

/** Long enough that a busy machine renews in time (a beat is a third, a store call a quarter), short enough for many tests. */
export const LEASE_MS = 2_000;

type Caller = ReturnType<typeof createCaller>;

export interface Place {
  /** The name of a key that no other place has. */
  label(name: string): string;
  /** An application in this process. */
  caller(options?: {
    readonly address?: string;
    readonly policy?: Policy;
    /** The share of store calls that are never answered. */
    readonly loses?: number;
  }): Promise<Caller>;
  /** An application in another one. */
  app(options?: { readonly clockOffMs?: number; readonly policy?: Policy }): Promise<App>;
  /** What the log has about a key, in order. */
  lines(label: string): readonly Line[];
  /** How often what must not happen twice has happened. */
  effects(label: string, guarantee: Guarantee): Promise<number>;
  events(label: string): readonly string[];
  /**
   * What holds whatever was done to whom: at most one effect where that is promised, a cause on record for each effect beyond the first,
   * one result for all who got one, and no rejection that nobody handled.
   */
  verify(label: string, guarantee: Guarantee): Promise<void>;
}

/** Each begins an effect that is not the first, and says why it could. */
const CAUSES_OF_REPETITION: ReadonlySet<string> = new Set([
  "takeover",
  "released",
  "completion-lost",
  "lease-lost",
  "unprotected",
]);

export async function openPlace(
  { storeName, address: addressOf }: Subject,
  { onTestFinished }: TestContext,
): Promise<Place> {
  const address = addressOf();
  const unique = randomUUID().slice(0, 8);
  const folder = mkdtempSync(join(tmpdir(), "oncekey-effects-"));
  const logPath = join(folder, "log");
  const log = effectLog(logPath);
  const outsider: Outsider = await storeKinds[storeName].outside(address);
  const endings: (() => Promise<unknown>)[] = [];
  let processes = 0;
  onTestFinished(async () => {
    await Promise.allSettled(endings.map((end) => end()));
    await outsider.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const nameOf = (kind: string) => {
    processes += 1;
    return `${kind}-${processes}`;
  };
  const lines = (label: string) => log.read().filter((line) => line.label === label);
  const events = (label: string) =>
    lines(label).flatMap((line) => (line.kind === "event" ? [line.type] : []));
  const effects = async (label: string, guarantee: Guarantee) =>
    guarantee === "exactly-once"
      ? (await outsider.rows()).filter((row) => row.label === label).length
      : lines(label).filter(({ kind }) => kind === "effect").length;

  return {
    label: (name) => `${name}-${unique}`,
    async caller({ address: at = address, policy = {}, loses = 0 } = {}) {
      const opened = await storeKinds[storeName].open(at);
      const name = nameOf("caller");
      const caller = createCaller({ name, opened, log, leaseMs: LEASE_MS, policy, loses });
      endings.push(async () => {
        await caller.close();
        await opened.close();
      });
      return caller;
    },
    async app({ clockOffMs = 0, policy = {} } = {}) {
      const name = nameOf("app");
      const app = await startApp({
        name,
        storeName,
        address,
        logPath,
        leaseMs: LEASE_MS,
        clockOffMs,
        policy,
      });
      endings.push(app.kill);
      return app;
    },
    lines,
    events,
    effects,
    async verify(label, guarantee) {
      const count = await effects(label, guarantee);
      if (guarantee !== "at-least-once") expect(count, `effects of ${label}`).toBeLessThanOrEqual(1);
      else if (count > 1) {
        const causes = events(label).filter((type) => CAUSES_OF_REPETITION.has(type));
        expect(causes.length, `causes of ${count} effects of ${label}`).toBeGreaterThanOrEqual(count - 1);
      }
      expect(new Set(replayedRuns(lines(label))).size, `results of ${label}`).toBeLessThanOrEqual(1);
      expect(log.read().filter(({ kind }) => kind === "stray")).toEqual([]);
    },
  };
}

/** The runs whose results repeats were given. */
function replayedRuns(lines: readonly Line[]): readonly string[] {
  return lines.flatMap((line) => (line.kind === "answer" && line.how === "replayed" ? [line.run] : []));
}
