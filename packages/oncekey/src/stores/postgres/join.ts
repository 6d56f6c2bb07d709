/**
 * @module
 * Records inside a transaction that the application holds: claimed, completed and committed with whatever else it writes.
 *
 * Invariants: the application's transaction is never begun, committed or rolled back here; what may fail runs after a savepoint;
 * what others have committed is read, not what the snapshot of an older statement saw; where the isolation forbids that, the
 * transaction has to be repeated. Waiting for other transactions is bounded, and the setting that bounds it is put back.
 */
import { OncekeyError } from "../../core/errors.js";
import type { StoredRecord } from "../../core/record.js";
import type {
  ClaimRequest,
  CompleteRequest,
  JoinedClaimOutcome,
  JoinedTransaction,
  Savepoint,
} from "../../core/store.js";
import { claimRecord } from "../../core/transitions.js";
import { encodeText } from "../rows.js";
import { type AskCaller, type CallerTransaction, callerOf, WaitedTooLong } from "./caller.js";
import { arrayOf, paramsOf, recordOf } from "./codec.js";
import type { JoinStatements } from "./join-statements.js";

/** What was read of a key that could not be claimed by an insert. */
interface Found {
  readonly record: StoredRecord;
  readonly revision: string;
  readonly nowMs: number;
}

/** Records that change under every look are somebody else's to decide on. */
const MAX_ROUNDS = 4;

export function joinTransaction(
  statements: JoinStatements,
  transaction: CallerTransaction,
): JoinedTransaction {
  const ask = callerOf(transaction);
  return {
    handle: transaction,
    savepoint: () => openSavepoint(ask),
    async claim(requests, waitMs) {
      try {
        return await claimAll(statements, ask, requests, waitMs);
      } catch (error) {
        if (!(error instanceof WaitedTooLong)) throw error;
        return requests.map(() => ({ kind: "contended" }));
      }
    },
    async complete(requests) {
      for (const request of requests) await complete(statements, ask, request);
    },
  };
}

let savepoints = 0;

async function openSavepoint(ask: AskCaller): Promise<Savepoint> {
  savepoints += 1;
  const name = `oncekey_${savepoints}`;
  await ask(`SAVEPOINT ${name}`);
  return {
    async release() {
      await ask(`RELEASE SAVEPOINT ${name}`);
    },
    async rollback() {
      await ask(`ROLLBACK TO SAVEPOINT ${name}`);
      await ask(`RELEASE SAVEPOINT ${name}`);
    },
  };
}

async function claimAll(
  statements: JoinStatements,
  ask: AskCaller,
  requests: readonly ClaimRequest[],
  waitMs: number,
): Promise<readonly JoinedClaimOutcome[]> {
  // Each key may have to be waited for, one after the other. 0 would mean: without end.
  const limit = `${Math.max(1, Math.floor(waitMs / requests.length))}ms`;
  const outcomes = new Map<string, JoinedClaimOutcome>();
  let left = requests;
  for (let round = 0; left.length > 0 && round < MAX_ROUNDS; round += 1) {
    for (const key of await insert(statements, ask, left, limit)) {
      outcomes.set(key, { kind: "claimed", attempt: 1, takeover: false, compared: true });
    }
    left = left.filter(({ key }) => !outcomes.has(key));
    if (left.length === 0) break;
    const found = await read(statements, ask, left);
    for (const request of left) {
      const outcome = await decide(statements, ask, request, found.get(request.key), limit);
      if (outcome !== undefined) outcomes.set(request.key, outcome);
    }
    left = left.filter(({ key }) => !outcomes.has(key));
  }
  return requests.map(({ key }) => outcomes.get(key) ?? { kind: "contended" });
}

async function insert(
  { claim }: JoinStatements,
  ask: AskCaller,
  requests: readonly ClaimRequest[],
  limit: string,
): Promise<readonly string[]> {
  const column = (value: (request: ClaimRequest) => string | number | null) => arrayOf(requests.map(value));
  const [answer = "[[]]"] = await ask(claim, [
    limit,
    column(({ key }) => key),
    column(({ scopeId }) => scopeId),
    column(({ operation }) => encodeText(operation)),
    column(({ label }) => (label === undefined ? null : encodeText(label))),
    column(({ token }) => token),
    column(({ fingerprint }) => fingerprint),
    column(({ guarantee }) => guarantee),
    column(({ onLapse }) => onLapse),
    column(({ leaseMs }) => leaseMs),
    column(({ retentionMs }) => retentionMs),
  ]);
  const [keys] = JSON.parse(answer) as readonly [readonly string[]];
  return keys;
}

async function read(
  statements: JoinStatements,
  ask: AskCaller,
  requests: readonly ClaimRequest[],
): Promise<ReadonlyMap<string, Found>> {
  const answers = await ask(statements.read, [arrayOf(requests.map(({ key }) => key))]);
  const found = new Map<string, Found>();
  for (const answer of answers) {
    const [nowMs, ...values] = JSON.parse(answer) as (string | null)[];
    const stored = recordOf(values);
    if (stored === undefined) continue;
    const { record, revision } = stored;
    found.set(record.key, { record, revision, nowMs: Number(nowMs) });
  }
  return found;
}

/** `undefined`: the record is not what was read, or is gone; it is claimed again. */
async function decide(
  statements: JoinStatements,
  ask: AskCaller,
  request: ClaimRequest,
  found: Found | undefined,
  limit: string,
): Promise<JoinedClaimOutcome | undefined> {
  if (found === undefined) return undefined;
  const { record: before, revision, nowMs } = found;
  const { outcome, record: after } = claimRecord(before, request, nowMs);
  if (after === before || after === undefined) return outcome;
  // A lapsed claim, an attempt that is counted, or a record that has expired and is still there.
  const values = paramsOf(after).map((value) => (typeof value === "string" ? value : null));
  const [answer = "[0]"] = await ask(statements.takeOver, [limit, ...values, request.key, revision]);
  return (JSON.parse(answer) as readonly [number])[0] === 1 ? outcome : undefined;
}

async function complete(
  statements: JoinStatements,
  ask: AskCaller,
  { key, token, retentionMs, outcome }: CompleteRequest,
): Promise<void> {
  const { head, body } = outcome;
  const bytes = body === undefined ? null : Buffer.from(body).toString("base64");
  const [rows] = await ask(statements.complete, [key, token, String(retentionMs), encodeText(head), bytes]);
  if (rows === "1") return;
  throw new OncekeyError(
    "TRANSACTION_ABORTED",
    "The claim is not in this transaction any more: the work has gone back to a savepoint from before it, or has ended the transaction.",
  );
}
