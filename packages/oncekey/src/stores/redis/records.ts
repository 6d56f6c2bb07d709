/**
 * @module
 * Records on the server, read and written back by compare-and-set: what `changeRemotely` needs.
 *
 * Invariants: a record is compared as the bytes it was read as, and with them its expiry, which is what a renewal changes;
 * so nothing is written over a state that was not read. Instants are the server's, read in the same step.
 */
import type { RecordKey, StoredRecord } from "../../core/record.js";
import type { Change } from "../../core/transitions.js";
import { type Changed, changeRemotely, type Reading, type RemoteRecords } from "../compare-and-set.js";
import type { RedisReply } from "./driver.js";
import { encodeRecord } from "./layout.js";
import { decodeGlance, decodeRecord, type Glance, NEVER } from "./reading.js";
import { ENDED, SCRIPTS } from "./scripts.js";
import type { Wire } from "./wire.js";

/** One state of one key. */
interface Revision {
  readonly value: Buffer;
  readonly expiresAtMs: number;
}

export interface GlanceAt {
  /** `undefined`: there is no record. `"unreadable"`: there is something else. */
  readonly glance: Glance | "unreadable" | undefined;
  readonly nowMs: number;
}

export interface Records extends RemoteRecords<Revision> {
  /** The name of a record's key on the server. */
  nameOf(key: RecordKey): string;
  /** The key of a record by the name of its key on the server. */
  keyOf(name: string): RecordKey;
  change<Outcome>(
    key: RecordKey,
    transition: (record: StoredRecord | undefined, nowMs: number) => Change<Outcome>,
    first?: Reading<Revision>,
  ): Promise<Changed<Outcome>>;
  /** Looks at records up to their results. In a cluster each goes by itself. */
  glance(keys: readonly RecordKey[]): Promise<readonly GlanceAt[]>;
}

const NOTHING = Buffer.alloc(0);
/** When something expires that is not there, as the server says it. */
const ABSENT = -2;
/** Keys of one script, so that it does not hold up the server. */
const KEYS_AT_ONCE = 250;

export interface RecordsOptions {
  readonly wire: Wire;
  readonly prefix: string;
  readonly cluster: boolean;
  readonly answerTimeoutMs: number;
}

export function createRecords({ wire, prefix, cluster, answerTimeoutMs }: RecordsOptions): Records {
  const nameOf = (key: RecordKey): string => prefix + key;

  async function glanceTogether(keys: readonly RecordKey[]): Promise<readonly GlanceAt[]> {
    const [first, ...others] = keys.map(nameOf);
    if (first === undefined) return [];
    const reply = (await wire.script(SCRIPTS.glance, [first, ...others], [])) as readonly RedisReply[];
    const nowMs = Number(reply[keys.length]);
    return keys.map((key, index) => ({ glance: glanceOf(key, reply[index]), nowMs }));
  }

  const records: Records = {
    nameOf,
    keyOf: (name) => name.slice(prefix.length) as RecordKey,
    async read(key) {
      const reply = (await wire.script(SCRIPTS.read, [nameOf(key)], [])) as readonly RedisReply[];
      const [value, expires, now] = reply;
      const nowMs = Number(now);
      if (!Buffer.isBuffer(value)) return { record: undefined, revision: undefined, nowMs };
      const expiresAtMs = Number(expires);
      return { record: decodeRecord(key, value, expiresAtMs), revision: { value, expiresAtMs }, nowMs };
    },
    async write(key, revision, record, nowMs) {
      const ended = await wire.script(
        SCRIPTS.write,
        [nameOf(key)],
        [
          revision?.value ?? NOTHING,
          String(revision?.expiresAtMs ?? ABSENT),
          record === undefined ? NOTHING : encodeRecord(record),
          expiryOf(record),
          isHeld(record, nowMs) ? "0" : "1",
          String(Math.floor(nowMs + answerTimeoutMs)),
        ],
      );
      return Number(ended) === ENDED.done;
    },
    change: (key, transition, first) => changeRemotely(records, key, transition, first),
    async glance(keys) {
      // Sent in one turn of the event loop, so to each server they go together.
      const size = cluster ? 1 : KEYS_AT_ONCE;
      const parts: Promise<readonly GlanceAt[]>[] = [];
      for (let from = 0; from < keys.length; from += size) {
        parts.push(glanceTogether(keys.slice(from, from + size)));
      }
      return (await Promise.all(parts)).flat();
    },
  };
  return records;
}

/** Of what the scripts' `glanceAt` gives. */
export function glanceOf(key: RecordKey, found: RedisReply | undefined): Glance | "unreadable" | undefined {
  const [value, bytes, expires] = found as readonly RedisReply[];
  const expiresAtMs = Number(expires);
  if (expiresAtMs === ABSENT || !Buffer.isBuffer(value)) return undefined;
  try {
    return decodeGlance(key, value, Number(bytes), expiresAtMs);
  } catch {
    return "unreadable";
  }
}

function expiryOf(record: StoredRecord | undefined): string {
  if (record === undefined || record.expiresAtMs === Number.POSITIVE_INFINITY) return String(NEVER);
  return String(Math.round(record.expiresAtMs));
}

/** Whether somebody holds the key, so that there is nothing to wake anybody for. */
function isHeld(record: StoredRecord | undefined, nowMs: number): boolean {
  return record?.state === "claimed" && nowMs < record.leaseEndsAtMs;
}
