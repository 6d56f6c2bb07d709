/**
 * @module scripts/bite/jobs
 *
 * Mistakes that can be made with scheduled jobs.
 */

const occurrence = "jobs/occurrence.ts";
const occurrences = "test/jobs/occurrences.test.ts";
const overlap = "test/jobs/overlap.test.ts";
const missed = "test/jobs/missed.test.ts";
const windows = "test/jobs/windows.test.ts";

/** @type {import("./mistakes.mjs").Mistake[]} */
export const jobMistakes = [
  {
    name: "jobs: the planned instant is the time of the call",
    file: "jobs/croner.ts",
    find: "const plannedMs = calendar.previousMs(instance.internals.clock.now());",
    replace: "const plannedMs: number | undefined = instance.internals.clock.now();",
    test: "test/jobs/croner.test.ts",
  },
  {
    name: "jobs: whoever waits takes over from a failure at once, without the pause",
    file: occurrence,
    find: 'onReleased: "refuse" }',
    replace: 'onReleased: "takeover" }',
    test: occurrences,
  },
  {
    name: "jobs: a later attempt than one knows of starts without the pause",
    file: occurrence,
    find: "if (attempt <= seen + 1) return;",
    replace: "if (attempt <= seen + 99) return;",
    test: occurrences,
  },
  {
    name: "jobs: attempts start after the window",
    file: occurrence,
    find: "while (remainingMs() > 0) {",
    replace: "for (let rounds = 0; rounds < 9; rounds++) {",
    test: windows,
  },
  {
    name: "jobs: an attempt after a failure is left out because a later occurrence has the turn",
    file: occurrence,
    find: "|| occurrence.madeUpFor || attempt > 1;",
    replace: "|| occurrence.madeUpFor;",
    test: overlap,
  },
  {
    name: "jobs: a store that is down runs the job on each instance, as the instance says of its routes",
    file: "jobs/options.ts",
    find: 'onStoreDown: "reject",',
    replace: "",
    test: windows,
  },
  {
    name: "jobs: turns are counted as attempts, and run out",
    file: "jobs/overlap.ts",
    find: "internals.policy.maxAttempts === undefined ? undefined : NO_END",
    replace: "internals.policy.maxAttempts ?? NO_END",
    test: overlap,
  },
  {
    name: "jobs: a turn is kept, as results are, and nobody else ever gets it",
    file: "jobs/overlap.ts",
    find: "keep: () => false,",
    replace: "keep: () => true,",
    test: overlap,
  },
  {
    name: "jobs: a job that has never run makes up for its past",
    file: "jobs/missed.ts",
    find: "const missed = isOld ? [...absent, ...crashed] : crashed;",
    replace: "const missed = isOld || true ? [...absent, ...crashed] : crashed;",
    test: missed,
  },
  {
    name: "jobs: what was forgotten counts as missed",
    file: "jobs/missed.ts",
    find: "return idempotency.internals.clock.now() - atMs < retentionMs - marginMs;",
    replace: "return retentionMs > marginMs;",
    test: missed,
  },
  {
    name: "jobs: a restart does not look behind what was left out",
    file: "jobs/missed.ts",
    find: "if (!(find.open && isOpen) && (",
    replace: "if (",
    test: missed,
  },
  {
    name: "jobs: a timer on the edge of two instants fires twice for one and never for the other",
    file: "jobs/calendar.ts",
    find: "nowMs - last.atMs >= gapMs / 2",
    replace: "nowMs - last.atMs > 2 * gapMs",
    test: "src/jobs/calendar.test.ts",
  },
  {
    name: "jobs: two calls in one long period are for two instants",
    file: "jobs/calendar.ts",
    find: "last?.plannedMs === previousMs && nowMs - last.atMs >= gapMs / 2",
    replace: "last?.plannedMs === previousMs",
    test: "src/jobs/calendar.test.ts",
  },
];
