/**
 * @module
 * All instances fire, one runs.
 */
import { systemClock } from "../../core/clock.js";
import { equal, ok } from "../store-contract/check.js";
import type { JobCase, JobContext, JobLine } from "./context.js";
import { shown } from "./context.js";

export const firing: readonly JobCase[] = [
  {
    name: "four processes, one schedule: each planned instant runs once",
    why: "The report would be sent four times.",
    async run(context) {
      await Promise.all([1, 2, 3, 4].map(() => context.start()));
      await context.until("four occurrences", (lines) => endedInstants(lines).length >= 4);
      eachRanOnce(context);
      for (const { plannedAt = 0 } of context.starts()) equal(plannedAt % 1_000, 0, "a full second");
    },
  },
  {
    name: "clocks that are apart change nothing",
    why: "Whoever is behind would run again what was over long ago.",
    async run(context) {
      const instances = await Promise.all(
        [0, 1_500, -1_500].map((clockOffMs) => context.start({ clockOffMs })),
      );
      await context.until("occurrences fired by all", (lines) =>
        instances.every(({ name }) => occurrencesOf(lines, name).length >= 4),
      );
      eachRanOnce(context);
    },
  },
  {
    name: "overlap skip: while an occurrence runs, later ones are left out, on all instances",
    why: "A report that takes longer than its period would run twice at a time, then three times.",
    async run(context) {
      const options = { overlap: "skip", behaviour: { holdMs: 2_500 } } as const;
      await Promise.all([1, 2, 3].map(() => context.start(options)));
      await context.until("two that ran, one left out", (lines) => {
        const skipped = lines.some(({ end }) => end === "skipped");
        return skipped && endedInstants(lines).length >= 2;
      });
      eachRanOnce(context);
      noneOverlaps(context);
      const ran = new Set(context.starts().map(({ plannedAt }) => plannedAt));
      const both = context.log().find(({ end, plannedAt }) => end === "skipped" && ran.has(plannedAt));
      equal(both, undefined, "one that was left out and ran");
    },
  },
  {
    name: "overlap queue: a later occurrence waits for its turn, and none is left out",
    why: "Two would run at a time, or one would be lost.",
    async run(context) {
      const options = {
        overlap: "queue",
        windowMs: 120_000,
        behaviour: { holdMs: 2_500, heldRuns: 1 },
      } as const;
      await Promise.all([1, 2].map(() => context.start(options)));
      const fired = await context.until("three that were fired", (lines) => {
        const instants = [...new Set(occurrencesAndStarts(lines))].sort((a, b) => a - b);
        return instants.length >= 3 ? instants.slice(0, 3) : undefined;
      });
      await context.until("the first three have run", (lines) =>
        fired.every((instant) => endedInstants(lines).includes(instant)),
      );
      eachRanOnce(context);
      noneOverlaps(context);
      equal(
        context.log().find(({ end }) => end === "skipped"),
        undefined,
        "left out",
      );
    },
  },
  {
    name: "a store that is down when it fires: it runs when the store is back, once",
    why: "An outage of a second would cost the report of the night.",
    async run(context) {
      const options = { overlap: "queue", windowMs: 60_000 } as const;
      const instances = await Promise.all([context.start(options), context.start(options)]);
      await context.until("one occurrence", (lines) => endedInstants(lines).length >= 1);
      const cutAtMs = systemClock.now();
      await Promise.all(instances.map((instance) => instance.cutOff()));
      await context.sleep(3_000);
      const backAtMs = systemClock.now();
      await Promise.all(instances.map((instance) => instance.reconnect()));
      await context.until("one that was planned while it was down", (lines) =>
        endedInstants(lines).some((instant) => instant > cutAtMs + 1_000 && instant < backAtMs),
      );
      eachRanOnce(context);
    },
  },
];

/** The planned instants whose work has ended. */
export function endedInstants(lines: readonly JobLine[]): readonly number[] {
  return lines.flatMap(({ kind, plannedAt }) =>
    kind === "end" && plannedAt !== undefined ? [plannedAt] : [],
  );
}

function occurrencesOf(lines: readonly JobLine[], name: string): readonly JobLine[] {
  return lines.filter(({ kind, instance }) => kind === "occurrence" && instance === name);
}

function occurrencesAndStarts(lines: readonly JobLine[]): readonly number[] {
  return lines.flatMap(({ plannedAt }) => (plannedAt === undefined ? [] : [plannedAt]));
}

/** No planned instant has two starts. */
export function eachRanOnce(context: JobContext): void {
  const starts = context.starts();
  const twice = starts.find(({ plannedAt }) => context.starts(plannedAt).length > 1);
  ok(twice === undefined, `a planned instant ran twice\n${shown(context.log())}`);
}

/** Between the start and the end of one run there is no start of another. */
function noneOverlaps(context: JobContext): void {
  let running: JobLine | undefined;
  for (const line of context.log()) {
    if (line.kind === "start") {
      ok(running === undefined, `two occurrences ran at a time\n${shown(context.log())}`);
      running = line;
    } else if (line.kind === "end") running = undefined;
  }
}
