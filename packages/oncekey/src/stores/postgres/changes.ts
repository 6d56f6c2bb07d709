/**
 * @module
 * Changing one record by a transition of the core: read, decide, write by compare-and-set.
 *
 * Invariants: nothing is written over a state that was not read; a row that somebody has locked is not waited for but tried again
 * a few times, and then counts as held.
 */
import { systemClock } from "../../core/clock.js";
import { OncekeyError } from "../../core/errors.js";
import type { ClaimToken, RecordKey, StoredRecord } from "../../core/record.js";
import type { Change } from "../../core/transitions.js";
import { changeRemotely, type Reading } from "../compare-and-set.js";
import { COLUMNS } from "../rows.js";
import type { ServerClock } from "../server-clock.js";
import { paramsOf, recordOf } from "./codec.js";
import type { RunStatement } from "./connections.js";
import type { PostgresParam } from "./driver.js";
import type { Settings } from "./options.js";
import type { LockStrength, Statements } from "./statements.js";

export type Transition<Outcome> = (stored: StoredRecord | undefined, nowMs: number) => Change<Outcome>;

/** What all calls share. */
export interface Place {
  readonly settings: Settings;
  readonly statements: Statements;
  readonly clock: ServerClock;
  readonly run: RunStatement;
  /** @throws RowLocked if somebody holds the row. */
  readonly change: <Outcome>(
    key: RecordKey,
    transition: Transition<Outcome>,
    how: ChangeOptions,
  ) => Promise<Outcome>;
  readonly read: (key: RecordKey) => Promise<Reading<string>>;
  /** Told after a claim has ended, or become unknown. */
  readonly ended: (key: RecordKey) => void;
}

interface ChangeOptions {
  readonly lock: LockStrength;
  /** A reading that has been made already. */
  readonly first?: Reading<string> | undefined;
}

/** For how long a row that is locked, or pinned, counts as claimed; whoever asks again then sees. */
export const LOCKED_FOR_MS = 1_000;
/** Whoever has claimed a key in a transaction of the application's that has not ended. */
export const UNSEEN = "~" as ClaimToken;
/** Locks other than pins are held for a statement or a commit. */
const TRIES_MS = [5, 20, 50] as const;

/** A transaction holds the row. Nothing was changed. */
export class RowLocked extends OncekeyError<"STORE_UNAVAILABLE"> {
  constructor() {
    super("STORE_UNAVAILABLE", "Another transaction holds this record. Nothing was changed; try again.", {
      retryAfterMs: LOCKED_FOR_MS,
    });
  }
}

export function createChanges({
  run,
  statements,
  clock,
  settings,
  ended,
}: Omit<Place, "change" | "read">): Pick<Place, "change" | "read"> {
  const writing = { run, statements, timeoutMs: settings.timeoutMs };

  async function read(key: RecordKey): Promise<Reading<string>> {
    const sentAtMs = systemClock.monotonicMs();
    const [row = []] = await run(statements.read, [key]);
    const nowMs = Number(row[0]);
    clock.seen(nowMs, sentAtMs, systemClock.monotonicMs());
    const stored = recordOf(row.slice(1));
    return { record: stored?.record, revision: stored?.revision, nowMs };
  }

  async function changeOnce<Outcome>(
    key: RecordKey,
    transition: Transition<Outcome>,
    { lock, first }: ChangeOptions,
  ): Promise<Outcome> {
    const { outcome, record, written } = await changeRemotely(
      {
        read,
        write: (_, revision, next, nowMs) =>
          writeRecord(writing, lock, { key, revision, record: next, nowMs }),
      },
      key,
      transition,
      first,
    );
    if (written && record?.state !== "claimed") ended(key);
    return outcome;
  }

  return {
    read,
    async change(key, transition, how) {
      for (const waitMs of TRIES_MS) {
        try {
          return await changeOnce(key, transition, waitMs === TRIES_MS[0] ? how : { lock: how.lock });
        } catch (error) {
          if (!(error instanceof RowLocked)) throw error;
        }
        await new Promise<void>((resolve) => void systemClock.setTimer(resolve, waitMs));
      }
      return changeOnce(key, transition, { lock: how.lock });
    },
  };
}

interface Writing {
  readonly run: RunStatement;
  readonly statements: Statements;
  readonly timeoutMs: number;
}

interface Written {
  readonly key: RecordKey;
  readonly revision: string | undefined;
  readonly record: StoredRecord | undefined;
  readonly nowMs: number;
}

/** @throws RowLocked if somebody holds the row; `false`: it is not at `revision` any more, or it was too late. */
async function writeRecord(
  { run, statements, timeoutMs }: Writing,
  lock: LockStrength,
  { key, revision, record, nowMs }: Written,
): Promise<boolean> {
  const until = String(nowMs + timeoutMs);
  if (revision === undefined) {
    if (record === undefined) return true;
    const made = await run(statements.insert, [...paramsOf(record).slice(0, COLUMNS.length), until]);
    return made.length === 1;
  }
  const params: readonly PostgresParam[] =
    record === undefined ? [key, revision, until] : [...paramsOf(record), revision, until];
  const statement =
    record === undefined
      ? statements.remove
      : { "FOR UPDATE": statements.update, "FOR NO KEY UPDATE": statements.updateMild }[lock];
  const [row] = await run(statement, params);
  if (row?.[0] === "locked") throw new RowLocked();
  return row?.[0] === "written";
}
