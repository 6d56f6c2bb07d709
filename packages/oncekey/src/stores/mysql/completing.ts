/**
 * @module
 * The completion of a record as a statement of the work's own transaction.
 *
 * Invariant: a transaction goes on to its COMMIT only if its completion is in it. A record that is gone is made again, and
 * who has made it is looked at, never assumed.
 */
import type {
  CommitOutcome,
  CompleteOutcome,
  CompleteRequest,
  TransactionRequest,
} from "../../core/store.js";
import { completeRecord } from "../../core/transitions.js";
import type { Reading } from "../compare-and-set.js";
import type { RecordRow } from "../rows.js";
import { completionText } from "./changes.js";
import { lockText, NOW, nowOf, readingOf } from "./records.js";
import { ALL, assignments, EPOCH, insertText, newRevision } from "./rows.js";
import type { MysqlServer } from "./server.js";
import { literal } from "./sql.js";

/** How often the record is read again that others keep making and removing. */
const MAX_ROUNDS = 8;

/** The completion as a statement of the transaction. Answers only if there is nothing to commit. */
export async function completeInside(
  table: string,
  ask: (sql: string) => Promise<unknown>,
  completion: CompleteRequest,
  server: MysqlServer,
): Promise<CommitOutcome | undefined> {
  if ((await changedRows(ask, completionText(table, completion, server, literal, newRevision()))) === 1) {
    return undefined;
  }
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const { record: before, revision, nowMs } = await lockedReading(ask, table, completion);
    const { outcome: answer, record } = completeRecord(before, completion, nowMs);
    if (answer.kind !== "completed") return withoutCommit(answer);
    if (answer.how === "already" && record?.outcome !== undefined) {
      // An earlier commit of this token had landed: these rows would be a second set of them.
      return { kind: "replaced", by: { token: completion.token, outcome: record.outcome } };
    }
    if (record === undefined) return { kind: "refused", reason: "There is no record to complete" };
    const text =
      revision === undefined
        ? insertText(table, literal, [[record, newRevision()]], EPOCH)
        : `UPDATE ${table} SET ${assignments(literal, record, newRevision())} WHERE \`key\`=${literal(completion.key)}`;
    // Nothing locks a key without a row: another may have claimed it since it was read, and it is read again.
    if ((await changedRows(ask, text)) === 1) return undefined;
  }
  return { kind: "refused", reason: "The record was made and removed again and again by others" };
}

/** For rows that a statement has found: each has a new revision, so it counts however the pool counts. */
async function changedRows(ask: (sql: string) => Promise<unknown>, sql: string): Promise<number> {
  const { affectedRows } = (await ask(sql)) as { readonly affectedRows?: unknown };
  return Number(affectedRows);
}

async function lockedReading(
  ask: (sql: string) => Promise<unknown>,
  table: string,
  { key }: TransactionRequest | CompleteRequest,
): Promise<Reading<number>> {
  const rows = (await ask(lockText(table, ALL, [key], "PRIMARY"))) as readonly RecordRow[];
  return readingOf(rows[0], nowOf((await ask(NOW)) as readonly RecordRow[]));
}

export function withoutCommit(
  answer: Exclude<CompleteOutcome, { readonly kind: "completed" }>,
): CommitOutcome {
  if (answer.kind === "replaced") return { kind: "replaced", by: answer.by };
  return { kind: "refused", reason: "The store is full" };
}
