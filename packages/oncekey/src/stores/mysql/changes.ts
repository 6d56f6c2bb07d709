/**
 * @module
 * Completing, renewing and releasing a claim that is still as its holder left it: the changes of every request.
 *
 * One transaction for all requests of a turn. It locks their rows in the order of the keys and refuses to wait for one that
 * somebody has; then those that can be had are changed, and the others are asked for alone. A change applies only to a live
 * record with the caller's token; everything else (`false`) is left to the transitions of the core.
 */
import { systemClock } from "../../core/clock.js";
import type { RecordKey } from "../../core/record.js";
import type { CompleteRequest, ExtendRequest, ReleaseRequest } from "../../core/store.js";
import type { BatchPort } from "../batches.js";
import { encodeText, FORMAT, type RecordRow } from "../rows.js";
import type { Database } from "./database.js";
import { faultOf } from "./driver.js";
import { batchFaultOf } from "./faults.js";
import { affected, type Locked, lockedText, lockText, whileHeld } from "./records.js";
import { fittingOutcome, newRevision, SERVER_NOW } from "./rows.js";
import type { MysqlServer } from "./server.js";
import { type Bind, literal } from "./sql.js";

interface Kind<Request> {
  readonly locked: Locked;
  readonly bytesOf: (request: Request) => number;
  /** The statement that does it. */
  readonly text: (table: string, request: Request, server: MysqlServer) => string;
}

interface Keyed {
  readonly key: RecordKey;
}

/** @returns whether the change was made */
function batchesOf<Request extends Keyed>(
  database: Database,
  { bytesOf, locked, text }: Kind<Request>,
): BatchPort<Request, boolean> {
  const table = database.tables.records;
  async function send(requests: readonly Request[]): Promise<readonly (boolean | undefined)[]> {
    const server = await database.ready();
    const keys = requests.map(({ key }) => key);
    const changes = requests.map((request) => text(table, request, server));
    try {
      const results = await database.ask(lockedText(table, keys, locked, changes));
      return requests.map((_, index) => affected(results, index));
    } catch (error) {
      // A single one is tried again as it is.
      if (faultOf(error) !== "held" || requests.length === 1) throw error;
      return changeUnheld(database, keys, locked, changes);
    }
  }
  return {
    keyOf: ({ key }) => key,
    bytesOf,
    send: (asked) => send(asked.map(({ request }) => request)).catch(passOverHeld),
    async alone({ request, endsAtMs }) {
      const leftMs = Math.max(0, endsAtMs - systemClock.monotonicMs());
      const [changed] = await whileHeld(() => send([request]), leftMs);
      return changed ?? false;
    },
    faultOf: batchFaultOf,
  };
}

/** One that is held is not worth an error: it is asked for alone. */
function passOverHeld(error: unknown): readonly undefined[] {
  if (faultOf(error) !== "held") throw error;
  return [undefined];
}

/** Somebody has one of the rows: the others are changed, and those that were passed over are told apart. */
function changeUnheld(
  { tables, within }: Database,
  keys: readonly RecordKey[],
  locked: Locked,
  changes: readonly string[],
): Promise<readonly (boolean | undefined)[]> {
  return within(async (ask) => {
    const lock = lockText(tables.records, "`key`", keys, locked);
    const [, rows] = (await ask(`BEGIN;${lock} SKIP LOCKED`)) as readonly [unknown, readonly RecordRow[]];
    const free = new Set(rows.map((row) => row.key));
    const possible = keys.flatMap((key, index) => (free.has(key) ? [index] : []));
    const texts = possible.map((index) => changes[index] ?? "");
    const results = (await ask([...texts, "COMMIT"].join(";"))) as unknown;
    // A single statement answers without a list.
    const list = possible.length === 0 ? [] : (results as readonly unknown[]);
    const changed = new Map(possible.map((index, place) => [index, affected([0, 0, ...list], place)]));
    return keys.map((_, index) => changed.get(index));
  });
}

/** A record that its holder may still change as it left it. */
function live({ key, token }: Keyed & { readonly token: string }, states: string, bind = literal): string {
  const mine = `\`key\`=${bind(key)} AND token=${bind(token)}`;
  const readable = `format=${FORMAT} AND state IN (${states})`;
  return `WHERE ${mine} AND ${readable} AND (expires_at IS NULL OR expires_at>${SERVER_NOW})`;
}

const after = (durationMs: string): string => `${SERVER_NOW} + INTERVAL (${durationMs})*1000 MICROSECOND`;

export function completeBatches(database: Database): BatchPort<CompleteRequest, boolean> {
  return batchesOf(database, {
    locked: "PRIMARY",
    bytesOf: ({ outcome }) => 2 * (outcome.head.length + (outcome.body?.byteLength ?? 0)),
    text: (table, request, server) => completionText(table, request, server, literal, newRevision()),
  });
}

/** Completes a claim that its token still holds. */
export function completionText(
  table: string,
  request: CompleteRequest,
  { maxPacketBytes }: MysqlServer,
  bind: Bind,
  revision: number,
): string {
  const { head, body } = fittingOutcome(request.outcome, maxPacketBytes);
  return `UPDATE ${table} SET ${[
    `revision=${revision}`,
    "state='completed'",
    `retention_ms=${bind(request.retentionMs)}`,
    `changed_at=${SERVER_NOW}`,
    `expires_at=${after(bind(request.retentionMs))}`,
    "reconciler_token=NULL,reconciler_lease_ends_at=NULL",
    `head=${bind(encodeText(head))}`,
    `body=${bind(body ?? null)}`,
  ].join(",")} ${live(request, "'claimed'", bind)}`;
}

export function extendBatches(database: Database): BatchPort<ExtendRequest, boolean> {
  return batchesOf(database, {
    locked: "PRIMARY",
    bytesOf: () => 0,
    text: (table, request) =>
      `UPDATE ${table} SET ${[
        `revision=${newRevision()}`,
        `lease_ms=${literal(request.leaseMs)}`,
        `lease_ends_at=${after(literal(request.leaseMs))}`,
        `expires_at=${after(`${literal(request.leaseMs)}+retention_ms`)}`,
      ].join(",")} ${live(request, "'claimed'")}`,
  });
}

/** One that gives the attempt of an earlier holder back is no single statement, and is left to the transitions. */
export function releaseBatches(database: Database): BatchPort<ReleaseRequest, boolean> {
  return batchesOf(database, {
    locked: "pin",
    bytesOf: () => 0,
    text(table, request) {
      const { started, keepAttempts, code } = request;
      const here = live(request, "'claimed','unknown'");
      if (!started) return `DELETE FROM ${table} ${here} AND attempt=1`;
      if (!keepAttempts) return `DELETE FROM ${table} ${here}`;
      return `UPDATE ${table} SET ${[
        `revision=${newRevision()}`,
        "state='released'",
        `changed_at=${SERVER_NOW}`,
        `expires_at=${after("retention_ms")}`,
        `last_code=${literal(code === undefined ? null : encodeText(code))}`,
        "reconciler_token=NULL,reconciler_lease_ends_at=NULL",
      ].join(",")} ${here}`;
    },
  });
}
