/**
 * @module
 * Every call of the port that changes a record.
 *
 * Those of each request are one command or one script, and so one round trip: claiming a key that is free or completed,
 * extending, completing, releasing. Their answer may be "not that simple": then, and for all other calls, the record is read
 * and the transitions of the core decide (`records.ts`).
 *
 * Invariant: each call is repeatable with its token. One whose answer is lost may have landed.
 */
import { isOncekeyError } from "../../core/errors.js";
import type { RecordKey, StoredRecord } from "../../core/record.js";
import type {
  ClaimOutcome,
  ClaimRequest,
  CompleteOutcome,
  CompleteRequest,
  ExtendOutcome,
  ExtendRequest,
  ReleaseOutcome,
  ReleaseRequest,
} from "../../core/store.js";
import {
  type Change,
  claimRecord,
  completeRecord,
  markUnknownRecord,
  reconcileRecord,
  releaseRecord,
  resolveRecord,
} from "../../core/transitions.js";
import type { RemoteStore } from "../remote-store.js";
import type { RedisReply } from "./driver.js";
import { faultOf, wordOf } from "./faults.js";
import { digits, encodeClaim, encodeOutcome, LETTERS, PLACES } from "./layout.js";
import { decodeRecord, unreadable } from "./reading.js";
import type { Records } from "./records.js";
import { ENDED, SCRIPTS } from "./scripts.js";
import type { Succession } from "./succession.js";
import type { Wire } from "./wire.js";

export type RecordCalls = Pick<
  RemoteStore,
  "claim" | "extend" | "complete" | "release" | "markUnknown" | "reconcile" | "resolve"
>;

export interface CallsOptions {
  readonly wire: Wire;
  readonly records: Records;
  readonly succession: Pick<Succession, "concerns" | "admit" | "gone">;
}

export function createCalls({ wire, records, succession }: CallsOptions): RecordCalls {
  const { nameOf } = records;

  /** The long way: read, decide, write back. */
  async function change<Outcome>(
    key: RecordKey,
    transition: (record: StoredRecord | undefined, nowMs: number) => Change<Outcome>,
  ): Promise<Outcome> {
    return (await records.change(key, transition)).outcome;
  }

  async function claim(request: ClaimRequest): Promise<ClaimOutcome> {
    const { key } = request;
    if (succession.concerns(request)) await succession.admit(request, () => records.read(key));
    const name = nameOf(key);
    const keepMs = String(Math.round(request.leaseMs + request.retentionMs));
    const command = ["SET", name, encodeClaim(request), "NX", "GET", "PX", keepMs] as const;
    const stored = await wire.command(name, command, isNull);
    if (stored === null) return { kind: "claimed", attempt: 1, takeover: false, compared: true };
    if (Buffer.isBuffer(stored) && stored.toString("latin1", ...PLACES.state) === LETTERS.completed) {
      // It answers for itself, whatever the time is.
      return claimRecord(decodeRecord(key, stored, Number.POSITIVE_INFINITY), request, 0).outcome;
    }
    return change(key, (record, nowMs) => claimRecord(record, request, nowMs));
  }

  async function extend(request: ExtendRequest): Promise<ExtendOutcome> {
    const name = nameOf(request.key);
    const ended = await wire.script(SCRIPTS.extend, [name], [request.token, digits(request.leaseMs, 12)]);
    const kind = EXTENDED[Number(ended)];
    if (kind === undefined) throw unreadable(undefined);
    if (kind === "gone") succession.gone(request.token);
    return { kind };
  }

  async function complete(request: CompleteRequest): Promise<CompleteOutcome> {
    const { key, token, retentionMs } = request;
    const name = nameOf(key);
    const { kinds, headBytes, text } = encodeOutcome(request.outcome);
    const args = [token, digits(retentionMs, 12) + kinds + headBytes, text];
    const ended = Number(await wire.script(SCRIPTS.complete, [name], args));
    if (ended === ENDED.unreadable) throw unreadable(undefined);
    const how = COMPLETED[ended];
    if (how === undefined) return change(key, (record, nowMs) => completeRecord(record, request, nowMs));
    return { kind: "completed", how };
  }

  async function release(request: ReleaseRequest): Promise<ReleaseOutcome> {
    const { key, token, started, keepAttempts } = request;
    const name = nameOf(key);
    const args = [token, started ? "1" : "0", keepAttempts ? "1" : "0"];
    const ended = Number(await wire.script(SCRIPTS.release, [name], args));
    if (ended === ENDED.unreadable) throw unreadable(undefined);
    const kind = RELEASED[ended];
    if (kind === undefined) return change(key, (record, nowMs) => releaseRecord(record, request, nowMs));
    return { kind };
  }

  return {
    claim: (request) => claim(request).catch(unlessFull({ kind: "full", limit: "records" })),
    extend,
    complete: (request) => complete(request).catch(unlessFull({ kind: "full" })),
    release,
    markUnknown: (request) => change(request.key, (was, nowMs) => markUnknownRecord(was, request, nowMs)),
    reconcile: (request) => change(request.key, (was, nowMs) => reconcileRecord(was, request, nowMs)),
    resolve: (request) => change(request.key, (was, nowMs) => resolveRecord(was, request, nowMs)),
  };
}

/** To SET with NX and GET: there was nothing, so it has written. */
function isNull(reply: RedisReply): boolean {
  return reply === null;
}

/** What the scripts' numbers mean, see there. */
const EXTENDED = ["gone", "extended", "replaced", "unknown", "completed"] as const;
const COMPLETED = [undefined, "stored", "late", "already"] as const;
const RELEASED = ["not-held", "released", "completed"] as const;

/** A server without memory has refused before it did anything. */
function unlessFull<Outcome>(outcome: Outcome): (error: unknown) => Outcome {
  return (error) => {
    if (isOncekeyError(error, "STORE_UNAVAILABLE") && wordOf(error.cause) === "OOM") return outcome;
    throw faultOf(error);
  };
}
