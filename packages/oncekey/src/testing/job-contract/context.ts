/**
 * @module
 * What a case of the job contract is, and what it is given: instances of an application, in processes of their own, that one scheduler
 * fires each second, and a log outside of what they did.
 *
 * Invariant: a case looks only at what was logged. No case depends on how fast a process starts: it waits for what has to come, and
 * judges what came.
 */

/** What the job's work does, beside saying in the log that it starts and ends. */
export interface JobBehaviour {
  /** How long it takes. @defaultValue 0 */
  readonly holdMs?: number | undefined;
  /** How many runs of the instance take that long. @defaultValue all */
  readonly heldRuns?: number | undefined;
  /** Attempts up to this one never end. @defaultValue 0 */
  readonly hangingAttempts?: number | undefined;
  /** Attempts up to this one throw. @defaultValue 0 */
  readonly failingAttempts?: number | undefined;
}

/** The job of an instance: planned for each full second, under one name that no other case has. */
export interface JobInstanceOptions {
  readonly behaviour?: JobBehaviour | undefined;
  /** How far the instance's wall clock is off. */
  readonly clockOffMs?: number | undefined;
  readonly windowMs?: number | undefined;
  readonly overlap?: "skip" | "queue" | "allow" | undefined;
  readonly missed?: "none" | "latest" | "all" | undefined;
  readonly retryDelayMs?: number | undefined;
}

/** An instance that is up: it has caught up or is about to, and its scheduler fires. */
export interface JobInstance {
  readonly name: string;
  /** SIGKILL, or what comes close to it. Resolves when it is gone. */
  kill(): Promise<unknown>;
  /** From now on its store does not answer, until `reconnect`. */
  cutOff(): Promise<unknown>;
  reconnect(): Promise<unknown>;
}

/**
 * One line of the log, in the order in which they happened.
 *
 * - `up`: the instance is about to catch up; `at` is its wall clock.
 * - `start`, `end`: of the work of one attempt.
 * - `occurrence`: the event of that name; `end` says how it has ended.
 */
export interface JobLine {
  readonly kind: "up" | "start" | "end" | "occurrence";
  readonly instance: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  /** Milliseconds since 1970; not of `up`. */
  readonly plannedAt?: number | undefined;
  readonly attempt?: number | undefined;
  readonly end?: string | undefined;
}

/** A store, a scheduler and a log of their own for one case. */
export interface JobSubject {
  /** Resolves when the instance is up. Its lease is `JOB_LEASE_MS`. */
  start(options: JobInstanceOptions): Promise<JobInstance>;
  log(): readonly JobLine[];
  /** Ends what is still up, and removes what is left. */
  dispose(): Promise<unknown>;
}

/** Long enough that a busy machine renews in time, short enough to wait for. */
export const JOB_LEASE_MS = 5_000;

export interface JobContext {
  start(options?: JobInstanceOptions): Promise<JobInstance>;
  log(): readonly JobLine[];
  /** The lines of attempts that have started, in order. */
  starts(plannedAt?: number): readonly JobLine[];
  /** Waits until `find` finds something in the log. */
  until<T>(what: string, find: (lines: readonly JobLine[]) => T | undefined | false): Promise<T>;
  sleep(ms: number): Promise<void>;
}

export interface JobCase {
  readonly name: string;
  /** What goes wrong for a user if it does not hold. */
  readonly why: string;
  run(context: JobContext): Promise<void>;
}

/** Processes of a busy machine may take their time, and leases have to lapse. */
const PATIENCE_MS = 45_000;
const STEP_MS = 20;

export function contextOf(subject: JobSubject, sleep: (ms: number) => Promise<void>): JobContext {
  const log = () => subject.log();
  return {
    start: (options = {}) => subject.start(options),
    log,
    starts: (plannedAt) =>
      log().filter((line) => line.kind === "start" && (plannedAt ?? line.plannedAt) === line.plannedAt),
    async until(what, find) {
      for (let waitedMs = 0; ; waitedMs += STEP_MS) {
        const found = find(log());
        if (found !== undefined && found !== false) return found;
        if (waitedMs >= PATIENCE_MS) throw new Error(`never happened: ${what}\n${shown(log())}`);
        await sleep(STEP_MS);
      }
    },
    sleep,
  };
}

/** The log as a failure shows it. */
export function shown(lines: readonly JobLine[]): string {
  return lines
    .slice(-60)
    .map(({ at, instance, kind, plannedAt = at, attempt, end }) =>
      [timeOf(at), instance, kind, timeOf(plannedAt), attempt, end]
        .filter((part) => part !== undefined)
        .join(" "),
    )
    .join("\n");
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString().slice(14, 23);
}
