/**
 * @module
 * Work that goes on after its caller has been answered: completions, releases and abandoned claims that did
 * not land at once.
 *
 * Invariants: the number of tasks and the bytes they hold are bounded; each ends by landing, by running out
 * of time, or at `close`, and its owner is told which. Pauses between tries grow and are jittered, so that a
 * store that comes back is not met by all at once.
 */
import { pause } from "./calls.js";
import type { Clock } from "./clock.js";
import { dropped } from "./promises.js";

export type TaskEnd = "landed" | "out-of-time" | "out-of-room" | "closed";

interface Task {
  /** One try. `true`: it has landed, or nothing is left to do. Must not reject. */
  readonly attempt: () => Promise<boolean>;
  readonly forMs: number;
  readonly bytes: number;
  readonly ended: (end: TaskEnd) => void;
}

export interface Background {
  /** `false`: there is no room; `ended` was called. */
  add(task: Task): boolean;
  /** Resolves when no task is left, or after `graceMs` with the rest ended as `closed`; says how many those were. */
  close(graceMs: number): Promise<number>;
}

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 5_000;

export interface BackgroundOptions {
  readonly maxTasks: number;
  readonly maxBytes: number;
  /** Gets the promise of each task, where the platform stops a process that has nothing to wait for. */
  readonly waitUntil: ((promise: Promise<unknown>) => void) | undefined;
}

export function createBackground(clock: Clock, limits: BackgroundOptions): Background {
  const running = new Set<Task>();
  let heldBytes = 0;
  let whenIdle: (() => void) | undefined;

  function end(task: Task, how: TaskEnd): void {
    if (!running.delete(task)) return;
    heldBytes -= task.bytes;
    task.ended(how);
    if (running.size === 0) whenIdle?.();
  }

  async function persist(task: Task): Promise<void> {
    const deadlineMs = clock.monotonicMs() + task.forMs;
    let pauseMs = FIRST_PAUSE_MS;
    while (running.has(task)) {
      await pause(clock, pauseMs * (0.5 + Math.random() / 2));
      if (!running.has(task)) return;
      if (await task.attempt()) return end(task, "landed");
      if (clock.monotonicMs() >= deadlineMs) return end(task, "out-of-time");
      pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
    }
  }

  return {
    add(task) {
      if (running.size >= limits.maxTasks || heldBytes + task.bytes > limits.maxBytes) {
        task.ended("out-of-room");
        return false;
      }
      heldBytes += task.bytes;
      running.add(task);
      const persisted = persist(task);
      try {
        // An async function fits the type; what it throws comes as a rejection.
        dropped(limits.waitUntil?.(persisted));
      } catch {
        // Some platforms refuse it outside of a request. The task goes on for as long as the process does.
      }
      return true;
    },
    async close(graceMs) {
      if (running.size > 0) {
        await new Promise<void>((resolve) => {
          const timer = clock.setTimer(resolve, graceMs);
          whenIdle = () => {
            timer.cancel();
            resolve();
          };
        });
      }
      const left = [...running];
      for (const task of left) end(task, "closed");
      return left.length;
    },
  };
}
