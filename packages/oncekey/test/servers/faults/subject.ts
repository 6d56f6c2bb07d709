/**
 * @module test/servers/faults/subject
 *
 * One store under these tests, and the places in which its callers, their log and their rows are looked at together.
 */
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Guarantee, Policy, RecordInfo } from "oncekey";
import { expect, type TestContext } from "vitest";
import { type App, startApp } from "./app-process.js";
import { type CallOptions, createCaller, type Outcome, type Point } from "./apps/caller.mjs";
import { effectLog, type Line } from "./apps/effect-log.mjs";
import { type Opened, type OpenOptions, type Outsider, type StoreName, storeKinds } from "./apps/stores.mjs";

/** Long enough that a busy machine renews in time (a beat is a third, a store call a quarter), short enough for many tests. */
export const LEASE_MS = 5_000;

export interface Subject {
  readonly storeName: StoreName;
  readonly guarantees: readonly Guarantee[];
  /** One process that writes keeps all others from writing until it has ended: SQLite's transactions. */
  readonly writersExclude: boolean;
  place(context: TestContext): Promise<Place>;
}

interface CallerOptions {
  /** Another way to the same records, such as through a proxy; or what it takes to open it. */
  readonly address?: string;
  readonly opening?: OpenOptions;
  readonly policy?: Policy;
  /** The share of store calls that are never answered. */
  readonly loses?: number;
  readonly onPoint?: (point: Point, label: string) => Promise<void>;
}

export interface Caller {
  call(options: CallOptions): Promise<Outcome>;
  find(label: string): Promise<RecordInfo | undefined>;
  readonly store: Opened["store"];
}

export interface Place {
  /** The name of a key that no other place has. */
  label(name: string): string;
  /** An application in this process. Two of them, unless told otherwise, go through two stores, as two processes would. */
  caller(options?: CallerOptions): Promise<Caller>;
  /** An application in another process. */
  app(options?: { readonly clockOffMs?: number; readonly policy?: Policy }): Promise<App>;
  readonly outsider: Outsider;
  /** How often what must not happen twice has happened. */
  effects(label: string, guarantee: Guarantee): Promise<number>;
  events(label: string): readonly string[];
  /**
   * What holds whatever was done to whom: at most one effect where that is promised, a cause on record for each effect beyond the first,
   * one result for all repeats, and no rejection that nobody handled.
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

/** What the places of one database have in common. */
interface World {
  readonly storeName: StoreName;
  readonly address: string;
  readonly logPath: string;
  readonly stores: readonly Opened[];
  readonly outsider: Outsider;
  close(): Promise<void>;
}

export interface SharedSubject extends Subject {
  readonly address: string;
  close(): Promise<void>;
}

/** All places share one database, through two stores of this process: connecting is what costs most. */
export async function sharedSubject(
  storeName: StoreName,
  address: string,
  guarantees: readonly Guarantee[],
): Promise<SharedSubject> {
  const world = await openWorld(storeName, address);
  const place = async (context: TestContext) => openPlace(world, context);
  return { storeName, address, guarantees, writersExclude: false, place, close: world.close };
}

/** Each place has a database of its own. */
export function separateSubject(
  storeName: StoreName,
  addressOf: () => string,
  guarantees: readonly Guarantee[],
): Subject {
  return {
    storeName,
    guarantees,
    writersExclude: true,
    async place(context) {
      const world = await openWorld(storeName, addressOf());
      return openPlace(world, context, world.close);
    },
  };
}

async function openWorld(storeName: StoreName, address: string): Promise<World> {
  const folder = mkdtempSync(join(tmpdir(), "oncekey-effects-"));
  const { open, outside } = storeKinds[storeName];
  const outsider = await outside(address);
  const stores = await Promise.all([open(address), open(address)]);
  return {
    storeName,
    address,
    logPath: join(folder, "log"),
    stores,
    outsider,
    async close() {
      await Promise.allSettled([...stores.map((store) => store.close()), outsider.close()]);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function openPlace(
  { storeName, address, logPath, stores, outsider }: World,
  { onTestFinished }: TestContext,
  closed: () => Promise<void> = async () => {},
): Place {
  const unique = randomUUID().slice(0, 8);
  const log = effectLog(logPath);
  const endings: (() => Promise<unknown>)[] = [];
  let made = 0;
  onTestFinished(async () => {
    await Promise.allSettled(endings.map((end) => end()));
    await closed();
  });

  const nameOf = (kind: string) => `${kind}-${++made}-${unique}`;
  const lines = (label: string) => log.read().filter((line) => line.label === label);
  const events = (label: string) =>
    lines(label).flatMap((line) => (line.kind === "event" ? [line.type] : []));
  const effects = async (label: string, guarantee: Guarantee) =>
    guarantee === "exactly-once"
      ? (await outsider.rows(label)).length
      : lines(label).filter(({ kind }) => kind === "effect").length;

  return {
    label: (name) => `${name}-${unique}`,
    async caller({ address: other, opening, ...options } = {}) {
      const name = nameOf("caller");
      const own = other ?? opening;
      const opened =
        own === undefined
          ? (stores[made % stores.length] as Opened)
          : await storeKinds[storeName].open(other ?? address, opening);
      const caller = createCaller({ name, opened, log, leaseMs: LEASE_MS, ...options });
      endings.push(async () => {
        await caller.close();
        if (own !== undefined) await opened.close();
      });
      await caller.warmUp();
      return caller;
    },
    async app({ clockOffMs = 0, policy = {} } = {}) {
      const name = nameOf("app");
      const to = { storeName, address, logPath, leaseMs: LEASE_MS, clockOffMs, policy };
      const app = await startApp({ name, ...to });
      endings.push(app.kill);
      return app;
    },
    outsider,
    effects,
    events,
    async verify(label, guarantee) {
      const count = await effects(label, guarantee);
      if (guarantee !== "at-least-once") expect(count, `effects of ${label}`).toBeLessThanOrEqual(1);
      else if (count > 1) {
        const causes = events(label).filter((type) => CAUSES_OF_REPETITION.has(type));
        expect(causes.length, `causes of ${count} effects of ${label}`).toBeGreaterThanOrEqual(count - 1);
      }
      // A process whose completion has not landed answers repeats with it; who took over meanwhile has a result of its own.
      const takeovers = events(label).filter((type) => type === "takeover").length;
      const results = guarantee === "at-least-once" ? 1 + takeovers : 1;
      expect(new Set(replayedRuns(lines(label))).size, `results of ${label}`).toBeLessThanOrEqual(results);
      expect(log.read().filter(({ kind }) => kind === "stray")).toEqual([]);
    },
  };
}

/** The runs whose results repeats were given. */
function replayedRuns(lines: readonly Line[]): readonly string[] {
  return lines.flatMap((line) => (line.kind === "answer" && line.how === "replayed" ? [line.run] : []));
}
