/**
 * @module
 * Completing, renewing and releasing: one statement for what is the rule, a claim of one's own that has not expired.
 *
 * Completions and renewals of one turn of the event loop share a statement. Whatever else is found there (replaced, unknown,
 * gone, completed before, locked) is decided by the transitions of the core, one record at a time.
 */
import type {
  CompleteOutcome,
  CompleteRequest,
  ExtendOutcome,
  ExtendRequest,
  ReleaseOutcome,
  ReleaseRequest,
} from "../../core/store.js";
import { completeRecord, extendRecord, releaseRecord } from "../../core/transitions.js";
import { type Asked, createBatches } from "../batches.js";
import { encodeText } from "../rows.js";
import type { Place } from "./changes.js";
import { arrayOf } from "./codec.js";
import { batchFaultOf } from "./faults.js";

export interface Endings {
  complete(request: CompleteRequest): Promise<CompleteOutcome>;
  extend(request: ExtendRequest): Promise<ExtendOutcome>;
  release(request: ReleaseRequest): Promise<ReleaseOutcome>;
  drained(): Promise<void>;
}

const STORED = { kind: "completed", how: "stored" } as const;
const EXTENDED = { kind: "extended" } as const;
const RELEASED = { kind: "released" } as const;

export function createEndings(place: Place): Endings {
  const { timeoutMs } = place.settings;
  const completions = createBatches<CompleteRequest, CompleteOutcome>(
    {
      keyOf: ({ key }) => key,
      bytesOf: ({ outcome }) => 100 + outcome.head.length + (outcome.body?.byteLength ?? 0),
      send: (asked) => sendCompletions(place, asked),
      alone: ({ request }) => completeAlone(place, request),
      faultOf: batchFaultOf,
    },
    timeoutMs,
  );
  const renewals = createBatches<ExtendRequest, ExtendOutcome>(
    {
      keyOf: ({ key }) => key,
      bytesOf: () => 100,
      send: (asked) => sendRenewals(place, asked),
      alone: ({ request }) =>
        place.change(request.key, (stored, nowMs) => extendRecord(stored, request, nowMs), {
          lock: "FOR NO KEY UPDATE",
        }),
      faultOf: batchFaultOf,
    },
    timeoutMs,
  );
  return {
    complete: completions.submit,
    extend: renewals.submit,
    release: (request) => release(place, request),
    async drained() {
      await Promise.all([completions.drained(), renewals.drained()]);
    },
  };
}

async function sendCompletions(
  { statements, run, ended }: Place,
  asked: readonly Asked<CompleteRequest>[],
): Promise<readonly (CompleteOutcome | undefined)[]> {
  const requests = asked.map(({ request }) => request);
  const bodies = requests.map(({ outcome }) => outcome.body);
  let end = 1;
  const starts = bodies.map((body) => {
    const start = end;
    end += body?.byteLength ?? 0;
    return start;
  });
  const rows = await run(statements.complete, [
    arrayOf(requests.map(({ key }) => key)),
    arrayOf(requests.map(({ token }) => token)),
    arrayOf(requests.map(({ retentionMs }) => retentionMs)),
    arrayOf(requests.map(({ outcome }) => encodeText(outcome.head))),
    arrayOf(starts),
    arrayOf(bodies.map((body) => body?.byteLength ?? null)),
    Buffer.concat(bodies.filter((body) => body !== undefined)),
  ]);
  const done = new Set(rows.map(([key]) => key));
  return requests.map(({ key }) => {
    if (!done.has(key)) return undefined;
    ended(key);
    return STORED;
  });
}

function completeAlone({ change }: Place, request: CompleteRequest): Promise<CompleteOutcome> {
  return change(request.key, (stored, nowMs) => completeRecord(stored, request, nowMs), {
    lock: "FOR NO KEY UPDATE",
  });
}

async function sendRenewals(
  { statements, run }: Place,
  asked: readonly Asked<ExtendRequest>[],
): Promise<readonly (ExtendOutcome | undefined)[]> {
  const requests = asked.map(({ request }) => request);
  const rows = await run(statements.extend, [
    arrayOf(requests.map(({ key }) => key)),
    arrayOf(requests.map(({ token }) => token)),
    arrayOf(requests.map(({ leaseMs }) => leaseMs)),
  ]);
  const done = new Set(rows.map(([key]) => key));
  return requests.map(({ key }) => (done.has(key) ? EXTENDED : undefined));
}

async function release(place: Place, request: ReleaseRequest): Promise<ReleaseOutcome> {
  const { statements, run, ended, change } = place;
  const { key, token, started, keepAttempts, code } = request;
  if (started) {
    const rows = keepAttempts
      ? await run(statements.releaseKept, [key, token, code === undefined ? null : encodeText(code)])
      : await run(statements.release, [key, token]);
    if (rows.length === 1) {
      ended(key);
      return RELEASED;
    }
  }
  return change(key, (stored, nowMs) => releaseRecord(stored, request, nowMs), { lock: "FOR UPDATE" });
}
