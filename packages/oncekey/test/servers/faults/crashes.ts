/**
 * @module test/servers/faults/crashes
 *
 * A process is killed at each point of a call, and the same call is made again while its lease holds, as it ends, and after it.
 *
 * Three calls are held at the point and killed with their process: one is repeated at once, one by many callers from before the lease
 * ends until after it, one when it has ended.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Guarantee } from "oncekey";
import { describe, expect, it } from "vitest";
import type { App } from "./app-process.js";
import type { CallOptions, Outcome, Point } from "./apps/caller.mjs";
import { answered, PASSING } from "./asking.js";
import { LEASE_MS, type Place, type Subject } from "./subject.js";

/** What a repeat finds once nobody holds the key any more, and how many effects there are then. */
interface Expected {
  readonly found: "runs" | "runs again" | "unknown" | "replays";
  readonly effects: number;
}

const ONCE: Expected = { found: "runs", effects: 1 };
const NOT_AGAIN: Expected = { found: "replays", effects: 1 };

/**
 * The table of the promise. At-least-once repeats an effect whose completion was not recorded; at-most-once repeats nothing that began;
 * under exactly-once an effect that did not commit is none.
 */
const EXPECTED: Readonly<Record<Guarantee, Readonly<Record<Point, Expected>>>> = {
  "at-least-once": {
    "before-claim": ONCE,
    claimed: { found: "runs again", effects: 1 },
    "after-effect": { found: "runs again", effects: 2 },
    "before-completion": { found: "runs again", effects: 2 },
    "after-completion": NOT_AGAIN,
    "before-answer": NOT_AGAIN,
  },
  "at-most-once": {
    "before-claim": ONCE,
    claimed: { found: "unknown", effects: 0 },
    "after-effect": { found: "unknown", effects: 1 },
    "before-completion": { found: "unknown", effects: 1 },
    "after-completion": NOT_AGAIN,
    "before-answer": NOT_AGAIN,
  },
  "exactly-once": {
    "before-claim": ONCE,
    claimed: { found: "runs again", effects: 1 },
    "after-effect": { found: "runs again", effects: 1 },
    "before-completion": { found: "runs again", effects: 1 },
    "after-completion": NOT_AGAIN,
    "before-answer": NOT_AGAIN,
  },
};

const POINTS = Object.keys(EXPECTED["at-least-once"]) as Point[];

export function crashSuite(subject: Subject): void {
  describe.each(subject.guarantees)("%s: a process is killed", (guarantee) => {
    it.for(POINTS)("%s", { timeout: 120_000 }, async (point, context) => {
      const place = await subject.place(context);
      const { found, effects } = EXPECTED[guarantee][point];
      for (const repeats of rounds(subject, guarantee, point)) {
        const calls = repeats.map(([name]) => ({ label: place.label(name), guarantee }));
        const app = await place.app();
        await Promise.all(calls.map((call) => holdAt(app, { ...call, haltAt: point })));
        await app.kill();
        await Promise.all(
          repeats.map(([name, repeat]) => repeat(place, { label: place.label(name), guarantee }, found)),
        );
        for (const { label } of calls) {
          expect(await place.effects(label, guarantee), `effects of ${label}`).toBe(effects);
          await place.verify(label, guarantee);
        }
      }
    });
  });
}

type Repeat = (place: Place, call: CallOptions, found: Expected["found"]) => Promise<void>;

const REPEATS: readonly (readonly [name: string, repeat: Repeat])[] = [
  ["during", repeatedDuring],
  ["at", repeatedAround],
  ["after", repeatedAfter],
];

/** All three kinds of repeats at once, unless no two calls can stand at this point at the same time. */
function rounds({ writersExclude }: Subject, guarantee: Guarantee, point: Point) {
  const open = point === "after-effect" || point === "before-completion";
  const oneByOne = writersExclude && guarantee === "exactly-once" && open;
  return oneByOne ? REPEATS.map((repeat) => [repeat]) : [REPEATS];
}

async function holdAt(app: App, call: CallOptions): Promise<void> {
  const halted = app.halted(call.label).then(() => undefined);
  const ended = await Promise.race([halted, answered(() => app.call(call))]);
  if (ended !== undefined) throw new Error(`did not halt at ${call.haltAt}: ${JSON.stringify(ended)}`);
}

/** Refused while the lease holds; who waits is let in when it ends, and by then at the latest. */
async function repeatedDuring(place: Place, call: CallOptions, found: Expected["found"]): Promise<void> {
  const caller = await place.caller();
  if (found === "runs" || found === "replays") {
    expectFound(place, await answered(() => caller.call(call), PASSING), call, found);
    return;
  }
  const atOnce = await answered(() => caller.call(call));
  expect(atOnce).toEqual({ kind: "refused", code: "IN_FLIGHT" });
  const startedAt = performance.now();
  const waiting = { ...call, waitMs: 2 * LEASE_MS };
  expectFound(place, await answered(() => caller.call(waiting)), call, found);
  expect(performance.now() - startedAt).toBeLessThan(3 * LEASE_MS);
}

/** Two processes ask again and again while the lease ends: exactly one of them becomes the next holder. */
async function repeatedAround(place: Place, call: CallOptions, found: Expected["found"]): Promise<void> {
  const callers = await Promise.all([place.caller(), place.caller()]);
  await sleep(LEASE_MS / 2);
  const outcomes = await Promise.all(callers.map((caller) => answered(() => caller.call(call), PASSING)));
  const runs = new Set(outcomes.flatMap((outcome) => (outcome.kind === "refused" ? [] : [outcome.run])));
  expect(runs.size).toBe(found === "unknown" ? 0 : 1);
  const executed = outcomes.filter(({ kind }) => kind === "executed");
  expect(executed).toHaveLength(found.startsWith("runs") ? 1 : 0);
}

async function repeatedAfter(place: Place, call: CallOptions, found: Expected["found"]): Promise<void> {
  await sleep(LEASE_MS * 1.2);
  const caller = await place.caller();
  expectFound(place, await answered(() => caller.call(call), PASSING), call, found);
}

function expectFound(place: Place, outcome: Outcome, { label }: CallOptions, found: Expected["found"]): void {
  switch (found) {
    case "runs":
      expect(outcome).toMatchObject({ kind: "executed" });
      break;
    case "runs again":
      expect(outcome).toMatchObject({ kind: "executed" });
      expect(place.events(label)).toContain("takeover");
      break;
    case "unknown":
      expect(outcome).toEqual({ kind: "refused", code: "OUTCOME_UNKNOWN" });
      break;
    case "replays":
      expect(outcome).toMatchObject({ kind: "replayed" });
      break;
  }
}
