/** Every state of a record × every call. */
import { describe, expect, it } from "vitest";
import {
  asked,
  completing,
  FIRST,
  LATER,
  LEASE,
  marking,
  NOW,
  R,
  RECORDS,
  releasing,
  T,
  tombstone,
  U,
} from "../../test/support/record-scenes.js";
import { fingerprint, newToken } from "../testing/requests.js";
import type { StoredRecord } from "./record.js";
import {
  type Change,
  claimRecord,
  completeRecord,
  extendRecord,
  markUnknownRecord,
  releaseRecord,
} from "./transitions.js";

type Row = keyof typeof RECORDS;

const CALLS = {
  "claim(new)": (record: StoredRecord | undefined) => claimRecord(record, asked(newToken()), NOW),
  "claim(T)": (record: StoredRecord | undefined) => claimRecord(record, asked(T), NOW),
  "claim(another request)": (record: StoredRecord | undefined) =>
    claimRecord(record, asked(T, { fingerprint: fingerprint("another") }), NOW),
  "extend(T)": (record: StoredRecord | undefined) => extendRecord(record, asked(T), NOW),
  "complete(T)": (record: StoredRecord | undefined) => completeRecord(record, completing(T, LATER), NOW),
  "release(T)": (record: StoredRecord | undefined) => releaseRecord(record, releasing(T), NOW),
  "markUnknown(T)": (record: StoredRecord | undefined) => markUnknownRecord(record, marking(T), NOW),
} as const satisfies Readonly<
  Record<string, (record: StoredRecord | undefined) => Change<{ readonly kind: string }>>
>;

type Call = keyof typeof CALLS;
type Expected = Readonly<Record<string, unknown>>;
/** What is there afterwards; `"same"`: exactly what was there before. */
type Afterwards = "same" | "none" | StoredRecord["state"];

const fresh = { kind: "claimed", attempt: 1, takeover: false, compared: true };
const again = { kind: "claimed", attempt: 2, takeover: false, compared: true };
const takeover = { kind: "claimed", attempt: 2, takeover: true, compared: true };
const inFlight = { kind: "in-flight", holder: U, remainingMs: LEASE - 100, compared: true };
const isUnknown = { kind: "unknown", madeBy: T, attempt: 1, compared: true };
const replay = { kind: "completed", outcome: FIRST, compared: true };
const stored = { kind: "completed", how: "stored" };
const already = { kind: "completed", how: "already" };
const recreated = { kind: "completed", how: "recreated" };
const running = { kind: "replaced", by: undefined };
const byOther = { kind: "replaced", by: { token: U, outcome: FIRST } };
const notHeld = { kind: "not-held" };
const mismatch = (state: string) => ({ kind: "mismatch", state });

const held: Readonly<Record<Call, readonly [Expected, Afterwards]>> = {
  "claim(new)": [{ ...inFlight, holder: T }, "same"],
  "claim(T)": [fresh, "claimed"],
  "claim(another request)": [mismatch("claimed"), "same"],
  "extend(T)": [{ kind: "extended" }, "claimed"],
  "complete(T)": [stored, "completed"],
  "release(T)": [{ kind: "released" }, "none"],
  "markUnknown(T)": [{ kind: "unknown" }, "unknown"],
};
const ended: Readonly<Record<Call, readonly [Expected, Afterwards]>> = {
  "claim(new)": [{ ...replay, completedBy: T }, "same"],
  "claim(T)": [{ ...replay, completedBy: T }, "same"],
  "claim(another request)": [mismatch("completed"), "same"],
  "extend(T)": [{ kind: "completed" }, "same"],
  "complete(T)": [already, "same"],
  "release(T)": [{ kind: "completed" }, "same"],
  "markUnknown(T)": [{ kind: "completed" }, "same"],
};
const nobodys: Readonly<Record<Call, readonly [Expected, Afterwards]>> = {
  "claim(new)": [fresh, "claimed"],
  "claim(T)": [fresh, "claimed"],
  "claim(another request)": [fresh, "claimed"],
  "extend(T)": [{ kind: "gone" }, "same"],
  "complete(T)": [recreated, "completed"],
  "release(T)": [notHeld, "same"],
  "markUnknown(T)": [{ kind: "unknown" }, "unknown"],
};
const undecided: Readonly<Record<Call, readonly [Expected, Afterwards]>> = {
  "claim(new)": [isUnknown, "same"],
  "claim(T)": [isUnknown, "same"],
  "claim(another request)": [mismatch("unknown"), "same"],
  "extend(T)": [{ kind: "unknown" }, "same"],
  "complete(T)": [{ kind: "completed", how: "late" }, "completed"],
  "release(T)": [{ kind: "released" }, "none"],
  "markUnknown(T)": [{ kind: "unknown" }, "same"],
};
/** Of T, and it may not make it again. */
const given: Readonly<Record<Call, readonly [Expected, Afterwards]>> = {
  "claim(new)": [again, "claimed"],
  "claim(T)": [again, "claimed"],
  "claim(another request)": [again, "claimed"],
  "extend(T)": [{ kind: "replaced" }, "same"],
  "complete(T)": [running, "same"],
  "release(T)": [notHeld, "same"],
  "markUnknown(T)": [{ kind: "replaced" }, "same"],
};

const TABLE: Readonly<Record<Row, Readonly<Record<Call, readonly [Expected, Afterwards]>>>> = {
  absent: nobodys,
  "claimed by T, live": held,
  "claimed by T, lapsed": { ...held, "claim(new)": [takeover, "claimed"] },
  "claimed by T, lapsed, at-most-once": { ...held, "claim(new)": [isUnknown, "unknown"] },
  "claimed by U, live": {
    "claim(new)": [inFlight, "same"],
    "claim(T)": [inFlight, "same"],
    "claim(another request)": [mismatch("claimed"), "same"],
    "extend(T)": [{ kind: "replaced" }, "same"],
    "complete(T)": [running, "same"],
    "release(T)": [notHeld, "same"],
    "markUnknown(T)": [{ kind: "replaced" }, "same"],
  },
  "unknown, made by T": undecided,
  "unknown, being reconciled": {
    ...undecided,
    "claim(new)": [{ ...inFlight, holder: R }, "same"],
    "claim(T)": [{ ...inFlight, holder: R }, "same"],
  },
  "completed by T": ended,
  "completed by U": {
    "claim(new)": [{ ...replay, completedBy: U }, "same"],
    "claim(T)": [{ ...replay, completedBy: U }, "same"],
    "claim(another request)": [mismatch("completed"), "same"],
    "extend(T)": [{ kind: "replaced" }, "same"],
    "complete(T)": [byOther, "same"],
    "release(T)": [notHeld, "same"],
    "markUnknown(T)": [{ kind: "replaced" }, "same"],
  },
  "tombstone of T": {
    ...ended,
    "claim(new)": [{ ...replay, outcome: tombstone }, "same"],
    "claim(T)": [{ ...replay, outcome: tombstone }, "same"],
  },
  "released by T, attempts kept": given,
  "taken from T by an operator": {
    ...given,
    "claim(new)": [fresh, "claimed"],
    "claim(T)": [fresh, "claimed"],
    "claim(another request)": [fresh, "claimed"],
  },
  "expired, not purged": nobodys,
};

const cells = Object.entries(TABLE).flatMap(([row, calls]) =>
  Object.entries(calls).map(([call, [outcome, afterwards]]) => ({
    row: row as Row,
    call: call as Call,
    outcome,
    afterwards,
  })),
);

/** Somebody new each time is not the same call. */
const repeatable = cells.filter(({ call }) => call !== "claim(new)");

describe("the table of states and calls", () => {
  it.each(cells)("$row × $call: $outcome.kind, then $afterwards", ({ row, call, outcome, afterwards }) => {
    const before = RECORDS[row];
    const change = CALLS[call](before);
    expect(change.outcome).toMatchObject(outcome);
    if (afterwards === "same") expect(change.record).toBe(before);
    else expect(change.record?.state ?? "none").toBe(afterwards);
  });

  it.each(repeatable)("$row × $call: asked again at once, it says what it said", ({ row, call }) => {
    const first = CALLS[call](RECORDS[row]);
    const second = CALLS[call](first.record);
    const heard: Readonly<Record<string, string>> = {
      stored: "already",
      late: "already",
      recreated: "already",
    };
    if (first.outcome.kind === "released") return expect(second.outcome.kind).toBe("not-held");
    const how = "how" in first.outcome ? heard[first.outcome.how] : undefined;
    expect(second.outcome).toEqual(how === undefined ? first.outcome : { ...first.outcome, how });
  });
});
