/**
 * @module test/servers/faults/apps/effect-log
 *
 * What really happened, kept where the product cannot reach it: a file to which several processes append whole lines. A line that was
 * written is there after a SIGKILL, since the system has it; nothing is ever taken back.
 */
import { appendFileSync, existsSync, readFileSync } from "node:fs";

/**
 * `start`: work began. `effect`: it did what must not happen twice. `answer`: a caller was given this run's result.
 * `refusal`: a caller was refused. `event`: an event of the library. `stray`: a rejection that nobody handled.
 *
 * @typedef {{ readonly label: string, readonly process: string } & (
 *   | { readonly kind: "start" | "effect", readonly run: string, readonly attempt: number }
 *   | { readonly kind: "answer", readonly run: string, readonly how: "executed" | "replayed" | "unprotected" }
 *   | { readonly kind: "refusal", readonly code: string }
 *   | { readonly kind: "event", readonly type: string, readonly cause?: string }
 *   | { readonly kind: "stray", readonly message: string }
 * )} Line `label` names the key, in words of the test
 */

/** @param {string} path */
export function effectLog(path) {
  /** @returns {Line[]} */
  const read = () =>
    existsSync(path)
      ? readFileSync(path, "utf8")
          .split("\n")
          .filter((line) => line !== "")
          .map((line) => JSON.parse(line))
      : [];
  return {
    /** @param {Line} line */
    append: (line) => appendFileSync(path, `${JSON.stringify(line)}\n`),
    read,
  };
}

/** @typedef {ReturnType<typeof effectLog>} EffectLog */
