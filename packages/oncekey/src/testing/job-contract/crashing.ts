/**
 * @module
 * A runner dies, or its work fails.
 */
import { equal, ok } from "../store-contract/check.js";
import type { JobCase, JobContext, JobLine } from "./context.js";
import { JOB_LEASE_MS } from "./context.js";
import { eachRanOnce, endedInstants } from "./firing.js";

export const crashing: readonly JobCase[] = [
  {
    name: "SIGKILL of the runner in its work: another runs the occurrence again, in its window",
    why: "The report of the night would be lost with the machine that had begun it.",
    async run(context) {
      const windowMs = 60_000;
      const runner = await context.start({ behaviour: { hangingAttempts: 1 }, windowMs });
      const first = await firstStart(context);
      await Promise.all([1, 2, 3].map(() => context.start({ windowMs })));
      await runner.kill();
      await context.until("a second attempt that ends", (lines) =>
        endedInstants(lines).includes(first.plannedAt ?? 0),
      );
      const starts = context.starts(first.plannedAt);
      equal(
        starts.map(({ attempt }) => attempt),
        [1, 2],
        "its attempts",
      );
      ok(starts[1]?.instance !== first.instance, "another instance");
    },
  },
  {
    name: "SIGKILL of the only runner: its next start takes the occurrence up again, in its window",
    why: "A service with one instance would lose whatever it was deployed in the middle of.",
    async run(context) {
      const windowMs = 60_000;
      const only = await context.start({ behaviour: { hangingAttempts: 1 }, windowMs });
      const first = await firstStart(context);
      await only.kill();
      await context.start({ windowMs });
      await context.until("a second attempt that ends", (lines) =>
        endedInstants(lines).includes(first.plannedAt ?? 0),
      );
      equal(
        context.starts(first.plannedAt).map(({ attempt }) => attempt),
        [1, 2],
        "its attempts",
      );
    },
  },
  {
    name: "what crashed and whose window has ended does not run again",
    why: "A report of yesterday would be sent in the middle of the day.",
    async run(context) {
      const windowMs = JOB_LEASE_MS + 1_000;
      const only = await context.start({ behaviour: { hangingAttempts: 1 }, windowMs });
      const first = await firstStart(context);
      await only.kill();
      await context.sleep(windowMs + 500);
      await context.start({ windowMs });
      await context.until("a later occurrence", (lines) => endedInstants(lines).length >= 2);
      equal(context.starts(first.plannedAt).length, 1, "starts of the first");
    },
  },
  {
    name: "work that fails is tried again, after a pause, and then no more",
    why: "A mail server that was restarting would cost the report; or it would be sent with each second.",
    async run(context) {
      const options = { behaviour: { failingAttempts: 1 }, retryDelayMs: 700, overlap: "allow" } as const;
      await Promise.all([1, 2, 3].map(() => context.start(options)));
      const plannedAt = await context.until("a second attempt that ends", (lines) => endedInstants(lines)[0]);
      const [first, second, ...more] = context.starts(plannedAt);
      equal([first?.attempt, second?.attempt, more.length], [1, 2, 0], "its attempts");
      ok((second?.at ?? 0) - (first?.at ?? 0) >= 600, "a pause between them");
    },
  },
  {
    name: "SIGKILL of an instance that does not run changes nothing",
    why: "It would take the claim of another with it, or leave one that nobody has.",
    async run(context) {
      const options = { behaviour: { holdMs: 1_500 } };
      const instances = await Promise.all([1, 2, 3].map(() => context.start(options)));
      const first = await firstStart(context);
      const idle = instances.find(({ name }) => name !== first.instance);
      await idle?.kill();
      await context.until("its end, and another's", (lines) => endedInstants(lines).length >= 2);
      const byTheDead = context.starts().filter(({ instance }) => instance === idle?.name);
      if (byTheDead.length === 0) eachRanOnce(context);
      equal(context.starts(first.plannedAt).length, 1, "starts of the first");
    },
  },
];

function firstStart(context: JobContext): Promise<JobLine> {
  return context.until("a start", (lines) => lines.find(({ kind }) => kind === "start"));
}
