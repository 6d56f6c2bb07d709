/**
 * @module test/jobs/workers/schedulers
 *
 * How each scheduler fires a job each second, and catches up.
 */

/**
 * @typedef {import("oncekey").Idempotency<any>} Instance
 * @typedef {import("oncekey/jobs").JobOptions<any>} Options
 * @typedef {import("oncekey/jobs").JobFunction<any, any, any>} Run
 * @typedef {{ readonly start: (instance: Instance, options: Options, run: Run, up: () => void) => Promise<void> }} Scheduler
 */

/** @type {Scheduler} */
const croner = {
  async start(instance, options, run, up) {
    const [{ Cron }, { oncePerOccurrence }] = await Promise.all([
      import("croner"),
      import("oncekey/jobs/croner"),
    ]);
    const job = oncePerOccurrence(instance, options, run);
    const cron = new Cron("* * * * * *", { timezone: "UTC", paused: true }, job);
    up();
    void job.catchUp(cron);
    cron.resume();
  },
};

/** @type {Scheduler} */
const nodeCron = {
  async start(instance, options, run, up) {
    const [{ createTask }, { Cron }, { oncePerOccurrence }] = await Promise.all([
      import("node-cron"),
      import("croner"),
      import("oncekey/jobs/node-cron"),
    ]);
    const job = oncePerOccurrence(instance, { ...options, Cron, timeZone: "UTC" }, run);
    const task = createTask("* * * * * *", job, { timezone: "UTC", suppressMissedWarning: true });
    up();
    void job.catchUp(task);
    await task.start();
  },
};

/** @type {Scheduler} */
const timer = {
  async start(instance, options, run, up) {
    const { oncePerOccurrence } = await import("oncekey/jobs");
    const job = oncePerOccurrence(instance, { ...options, everyMs: 1_000 }, run);
    up();
    void job.catchUp();
    setInterval(job, 1_000);
  },
};

export const schedulers = { croner, "node-cron": nodeCron, timer };

/** @typedef {keyof typeof schedulers} SchedulerName */
