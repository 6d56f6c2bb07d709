/**
 * @module
 * What was planned while no instance was up.
 */
import { equal, ok } from "../store-contract/check.js";
import type { JobCase, JobContext, JobInstanceOptions, JobLine } from "./context.js";
import { shown } from "./context.js";
import { eachRanOnce, endedInstants } from "./firing.js";

export const making: readonly JobCase[] = [
  {
    name: "missed none: what was planned while no instance was up is not made up for",
    why: "A restart at noon would send the reports of a week.",
    async run(context) {
      const { missed } = await outage(context, { missed: "none" });
      equal(missed(), [], "made up for");
    },
  },
  {
    name: "missed latest: the last planned instant is made up for, once, and no other",
    why: "The report of the night would be missing in the morning, or come as often as there are instances.",
    async run(context) {
      const { missed, upAt } = await outage(context, { missed: "latest" });
      ok(missed().length <= 1, `more than one was made up for\n${shown(context.log())}`);
      await context.until("the latest at the start", (lines) =>
        endedInstants(lines).some((plannedAt) => plannedAt > upAt - 1_000 && plannedAt <= upAt + 1_000),
      );
      eachRanOnce(context);
    },
  },
  {
    name: "missed all: each planned instant is made up for, once",
    why: "A ledger would lack the days on which nobody was up.",
    async run(context) {
      const { missed, planned } = await outage(context, { missed: "all" });
      await context.until("all of them", () => planned.every((instant) => missed().includes(instant)));
      eachRanOnce(context);
    },
  },
  {
    name: "a job that has never run has missed nothing",
    why: "The first deployment would begin with the whole past.",
    async run(context) {
      await context.start({ missed: "all" });
      await context.until("an occurrence", (lines) => endedInstants(lines).length >= 1);
      const [up] = context.log();
      const early = context.starts().filter(({ plannedAt = 0 }) => plannedAt < (up?.at ?? 0) - 1_000);
      equal(early, [], "made up for");
    },
  },
];

interface Outage {
  /** Full seconds in which no instance was up. */
  readonly planned: readonly number[];
  /** Those of them that have run. */
  missed(): readonly number[];
  /** When the first instance was up again. */
  readonly upAt: number;
}

/** One instance runs and is gone for some seconds; two come up in its place, and each has fired since. */
async function outage(context: JobContext, options: JobInstanceOptions): Promise<Outage> {
  const before = await context.start(options);
  // What is killed before its completion has landed runs again, as it should, and would be taken for a second run here.
  await context.until("two occurrences that are over", (lines) => {
    const over = lines.filter(({ kind, end }) => kind === "occurrence" && end === "executed").length;
    return over >= 2 && over === lines.filter(({ kind }) => kind === "start").length;
  });
  await before.kill();
  const downAt = Math.max(...context.log().map(({ at }) => at));
  await context.sleep(4_000);
  const lines = context.log().length;
  const instances = await Promise.all([context.start(options), context.start(options)]);
  const later = (): readonly JobLine[] => context.log().slice(lines);
  await context.until("an occurrence of each", () =>
    instances.every(({ name }) =>
      later().some(
        ({ kind, instance, plannedAt = 0, end }) =>
          kind === "occurrence" && instance === name && end !== "missed" && plannedAt > downAt,
      ),
    ),
  );
  const upAt = Math.min(...later().flatMap(({ kind, at }) => (kind === "up" ? [at] : [])));
  const planned: number[] = [];
  // What was planned in the second in which the first instance died may have been on its way.
  for (let at = Math.ceil(downAt / 1_000) * 1_000 + 1_000; at < upAt - 1_000; at += 1_000) planned.push(at);
  ok(planned.length > 0, "the outage lasted for some planned instants");
  const missed = () =>
    planned.filter((instant) =>
      later().some(({ kind, plannedAt }) => kind === "start" && plannedAt === instant),
    );
  return { planned, missed, upAt };
}
