/**
 * @module
 * What must be true at the end, from the outbox alone: every planned instant from the first report on has exactly one.
 */
import type { OutboxLine } from "./outbox.js";

export const NIGHT_MS = 2_000;

export interface Night {
  readonly plannedAt: number;
  readonly begunBy: readonly string[];
  readonly sentBy: readonly string[];
}

/** All planned instants up to `lastMs` that have to have a report, in order. */
export function nightsOf(lines: readonly OutboxLine[], lastMs: number): readonly Night[] {
  const first = Math.min(...lines.map(({ plannedAt }) => plannedAt));
  const nights: Night[] = [];
  for (let plannedAt = first; plannedAt <= lastMs; plannedAt += NIGHT_MS) {
    const by = (wanted: OutboxLine["kind"]) =>
      lines.flatMap(({ kind, plannedAt: at, instance }) =>
        kind === wanted && at === plannedAt ? [instance] : [],
      );
    nights.push({ plannedAt, begunBy: by("begun"), sentBy: by("sent") });
  }
  return nights;
}

export function isRight({ sentBy }: Night): boolean {
  return sentBy.length === 1;
}
