/**
 * @module
 * What has left the house: a file to which all processes append whole lines. It knows nothing of oncekey, takes nothing back, and a
 * line that was written is there after a SIGKILL. The demo's verdict comes from here.
 */
import { appendFileSync, existsSync, readFileSync } from "node:fs";

/** `begun`: an instance works on a report. `sent`: it has sent it. Times are milliseconds since 1970. */
export interface OutboxLine {
  readonly kind: "begun" | "sent";
  readonly plannedAt: number;
  readonly instance: string;
  readonly attempt: number;
}

export interface Outbox {
  append(line: OutboxLine): void;
  read(): readonly OutboxLine[];
}

export function openOutbox(path: string): Outbox {
  return {
    append: (line) => appendFileSync(path, `${JSON.stringify(line)}\n`),
    read() {
      if (!existsSync(path)) return [];
      // The last piece is empty, or a line that is being written.
      const whole = readFileSync(path, "utf8").split("\n").slice(0, -1);
      return whole.map((line) => JSON.parse(line) as OutboxLine);
    },
  };
}
