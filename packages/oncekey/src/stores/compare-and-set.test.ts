import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { RecordKey, StoredRecord } from "../core/record.js";
import { changeRemotely, type RemoteRecords } from "./compare-and-set.js";

const KEY = "key" as RecordKey;

interface Place extends RemoteRecords<number> {
  stored(): StoredRecord | undefined;
  interfere(attempt: number): void;
}

/** One record whose revision grows with every write, as a server would keep it. */
function place(attempt?: number): Place {
  let record = attempt === undefined ? undefined : withAttempt(attempt);
  let revision = 1;
  return {
    stored: () => record,
    interfere(other) {
      record = withAttempt(other);
      revision += 1;
    },
    read: async () => ({ record, revision: record && revision, nowMs: 7 }),
    async write(_key, expected, next) {
      if (expected !== (record && revision)) return false;
      record = next;
      revision += 1;
      return true;
    },
  };
}

function withAttempt(attempt: number): StoredRecord {
  return { key: KEY, attempt } as StoredRecord;
}

const increment = (record: StoredRecord | undefined) => {
  const attempt = (record?.attempt ?? 0) + 1;
  return { outcome: attempt, record: withAttempt(attempt) };
};

describe("a change of a record that a server keeps", () => {
  it("is decided on the record and the clock of the server", async () => {
    const records = place(3);
    const seen: unknown[] = [];
    const changed = await changeRemotely(records, KEY, (record, nowMs) => {
      seen.push(record?.attempt, nowMs);
      return increment(record);
    });
    expect(seen).toEqual([3, 7]);
    expect(changed).toMatchObject({ outcome: 4, written: true });
    expect(records.stored()?.attempt).toBe(4);
  });

  it("writes nothing if the transition changes nothing", async () => {
    const records = place(3);
    const changed = await changeRemotely(records, KEY, (record) => ({ outcome: "same", record }));
    expect(changed).toMatchObject({ outcome: "same", written: false });
  });

  it("decides anew when somebody else has written meanwhile", async () => {
    const records = place(3);
    const stale = await records.read(KEY);
    records.interfere(10);
    const changed = await changeRemotely(records, KEY, increment, stale);
    expect(changed).toMatchObject({ outcome: 11, written: true });
  });

  it("loses no change of any number of callers", async () => {
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), fc.integer({ min: 2, max: 12 }), async (scheduler, callers) => {
        const records = place();
        const slow: RemoteRecords<number> = {
          read: scheduler.scheduleFunction(records.read),
          write: scheduler.scheduleFunction(records.write),
        };
        const all = Promise.all(Array.from({ length: callers }, () => changeRemotely(slow, KEY, increment)));
        await scheduler.waitAll();
        const outcomes = (await all).map(({ outcome }) => outcome);
        expect(new Set(outcomes).size).toBe(callers);
        expect(records.stored()?.attempt).toBe(callers);
      }),
    );
  });

  it("gives up, having changed nothing, on a key that changes in every round", async () => {
    const records = place(1);
    const contended: RemoteRecords<number> = {
      ...records,
      async read() {
        const reading = await records.read(KEY);
        records.interfere(1);
        return reading;
      },
    };
    await expect(changeRemotely(contended, KEY, increment)).rejects.toMatchObject({
      code: "STORE_UNAVAILABLE",
    });
    expect(records.stored()?.attempt).toBe(1);
  });
});
