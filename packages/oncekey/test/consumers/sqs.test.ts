/** Events of the shape that Lambda hands over, against a real store; there is no SQS here. */
import type { SQSEvent, SQSRecord } from "aws-lambda";
import { createIdempotency } from "oncekey";
import { handleOnce, type SqsOptions } from "oncekey/consumers/sqs";
import { memoryStore } from "oncekey/stores/memory";
import { manualClock } from "oncekey/testing";
import { describe, expect, it } from "vitest";

const QUEUE = "arn:aws:sqs:eu-central-1:123456789012:orders";

interface Sent {
  readonly key?: string;
  readonly body?: string;
  readonly group?: string;
  readonly received?: number;
}

let numbered = 0;
function record({ key, body = "{}", group, received = 1 }: Sent): SQSRecord {
  numbered += 1;
  return {
    messageId: `message-${numbered}`,
    receiptHandle: `receipt-${numbered}`,
    body,
    attributes: {
      ApproximateReceiveCount: String(received),
      SentTimestamp: "1545082649183",
      SenderId: "AIDAIENQZJOLO23YVJ4VO",
      ApproximateFirstReceiveTimestamp: "1545082649185",
      ...(group === undefined ? {} : { MessageGroupId: group }),
    },
    messageAttributes: key === undefined ? {} : { key: { stringValue: key, dataType: "String" } },
    md5OfBody: "",
    eventSource: "aws:sqs",
    eventSourceARN: group === undefined ? QUEUE : `${QUEUE}.fifo`,
    awsRegion: "eu-central-1",
  };
}

function event(...sent: readonly Sent[]): SQSEvent {
  return { Records: sent.map(record) };
}

function lambda(
  handler: (record: SQSRecord, work: { readonly signal: AbortSignal }) => unknown,
  options: Partial<SqsOptions<unknown, "at-least-once">> = {},
) {
  const clock = manualClock();
  const idempotency = createIdempotency({ store: memoryStore({ clock, sweepIntervalMs: 0 }), clock });
  const handle = handleOnce(
    idempotency,
    { consumer: "billing", key: (r) => r.messageAttributes.key?.stringValue, ...options },
    handler,
  );
  /** The places of the records that are to come again. */
  const failuresOf = async (given: SQSEvent, context?: { getRemainingTimeInMillis(): number }) => {
    const { batchItemFailures } = await handle(given, context);
    return batchItemFailures.map(({ itemIdentifier }) =>
      given.Records.findIndex(({ messageId }) => messageId === itemIdentifier),
    );
  };
  return { clock, failuresOf };
}

describe("a batch of SQS", () => {
  it("is deleted whole, when all of it is done", async () => {
    const handled: string[] = [];
    const { failuresOf } = lambda(({ messageId }) => handled.push(messageId));
    const batch = event({ key: "a" }, { key: "b" });
    expect(await failuresOf(batch)).toEqual([]);
    expect(handled).toHaveLength(2);
    expect(await failuresOf(batch)).toEqual([]);
    expect(handled).toHaveLength(2);
  });

  it("reports the records that failed, and handles only those again", async () => {
    const handled: string[] = [];
    const { failuresOf } = lambda(({ body }) => {
      handled.push(body);
      if (body === "b" && handled.length < 4) throw new Error("declined");
    });
    const batch = event({ key: "a", body: "a" }, { key: "b", body: "b" }, { key: "c", body: "c" });
    expect(await failuresOf(batch)).toEqual([1]);
    expect(await failuresOf(batch)).toEqual([]);
    expect(handled).toEqual(["a", "b", "c", "b"]);
  });

  it("has one effect for a key that it repeats", async () => {
    let effects = 0;
    const { failuresOf } = lambda(async () => {
      effects += 1;
      await Promise.resolve();
    });
    const batch = event({ key: "a" }, { key: "a" });
    await failuresOf(batch);
    expect(await failuresOf(batch)).toEqual([]);
    expect(effects).toBe(1);
  });

  it("has no more in hand than it may", async () => {
    let inHand = 0;
    let most = 0;
    const { failuresOf } = lambda(
      async () => {
        inHand += 1;
        most = Math.max(most, inHand);
        await new Promise((resolve) => setImmediate(resolve));
        inHand -= 1;
      },
      { concurrency: 2 },
    );
    const keys = ["a", "b", "c", "d", "e"];
    expect(await failuresOf(event(...keys.map((key) => ({ key }))))).toEqual([]);
    expect(most).toBe(2);
  });

  it("gives the rest of a group back after its first failure, in a FIFO queue only", async () => {
    const handled: string[] = [];
    const { failuresOf } = lambda(({ body }) => {
      handled.push(body);
      if (body === "a1") throw new Error("declined");
    });
    const sent = [
      { key: "a1", body: "a1", group: "a" },
      { key: "b1", body: "b1", group: "b" },
      { key: "a2", body: "a2", group: "a" },
      { key: "b2", body: "b2", group: "b" },
    ];
    expect(await failuresOf(event(...sent))).toEqual([0, 2]);
    expect(handled).not.toContain("a2");
    const fair = event(...sent);
    for (const one of fair.Records) one.eventSourceARN = QUEUE;
    expect(await failuresOf(fair)).toEqual([0]);
  });
});

describe("what is put back to SQS", () => {
  const declines = () => {
    throw new Error("declined");
  };

  it("is hidden for its delay, in whole seconds, which grows with its receives", async () => {
    const hidden: number[] = [];
    const changeVisibility = (_record: SQSRecord, seconds: number) => hidden.push(seconds);
    const backoff = { firstMs: 1_500, mostMs: 60_000 };
    const { failuresOf } = lambda(declines, { changeVisibility, backoff, concurrency: 1 });
    await failuresOf(event({ key: "a" }, { key: "b", received: 2 }));
    expect(hidden).toEqual([2, 3]);
  });

  it("comes again although its visibility could not be changed", async () => {
    const changeVisibility = () => Promise.reject(new Error("AccessDenied"));
    const { failuresOf } = lambda(declines, { changeVisibility });
    expect(await failuresOf(event({ key: "a" }))).toEqual([0]);
  });
});

describe("a dead letter of SQS", () => {
  it("is left to the redrive policy, unless there is a place for it", async () => {
    const { failuresOf } = lambda(() => undefined);
    expect(await failuresOf(event({}))).toEqual([0]);
  });

  it("is deleted as soon as it is kept elsewhere, and not before", async () => {
    const kept: string[] = [];
    const deadLetter: SqsOptions["deadLetter"] = (_record, { reason }) => {
      kept.push(reason);
      if (kept.length === 1) throw new Error("not now");
    };
    const { failuresOf } = lambda(() => undefined, { deadLetter });
    const batch = event({});
    expect(await failuresOf(batch)).toEqual([0]);
    expect(await failuresOf(batch)).toEqual([]);
    expect(kept).toEqual(["key-missing", "key-missing"]);
  });
});

describe("the time of the function", () => {
  it("is over before Lambda's: what is not done is reported, and the handler is told", async () => {
    let told: AbortSignal | undefined;
    let started: (() => void) | undefined;
    const starts = new Promise<void>((resolve) => {
      started = resolve;
    });
    const { clock, failuresOf } = lambda(
      ({ body }, { signal }) => {
        if (body !== "slow") return undefined;
        told = signal;
        started?.();
        return new Promise(() => undefined);
      },
      { concurrency: 1 },
    );
    const batch = event({ key: "a" }, { key: "b", body: "slow" }, { key: "c" });
    const failures = failuresOf(batch, { getRemainingTimeInMillis: () => 5_000 });
    await starts;
    await clock.advance(4_000);
    expect(await failures).toEqual([1, 2]);
    expect(told?.aborted).toBe(true);
  });
});

it("says everything that is wrong with the options at once", () => {
  const options = { concurrency: 0, changeVisibility: "1", deadLetter: 1, reserveMs: -1 };
  const make = () =>
    lambda(() => undefined, options as unknown as Partial<SqsOptions<unknown, "at-least-once">>);
  expect(make).toThrow(/concurrency.*changeVisibility.*deadLetter.*reserveMs/s);
});
