/**
 * Jobs of croner: its own calendar says what a firing is for, in each time zone and on the days when clocks change. The clock is
 * croner's, too; so the calendar is asked on a clock that stands still, and one test lets croner fire by itself.
 */
import { Cron, type CronOptions } from "croner";
import { createIdempotency } from "oncekey";
import { oncePerOccurrence } from "oncekey/jobs/croner";
import { memoryStore } from "oncekey/stores/memory";
import { manualClock, recordEvents } from "oncekey/testing";
import { describe, expect, it, onTestFinished, vi } from "vitest";

/** Fires as croner would at each of `times`, and returns what was run. */
async function plannedAt(
  pattern: string,
  timezone: string,
  times: readonly string[],
  options: CronOptions = {},
): Promise<readonly string[]> {
  const [first = ""] = times;
  const clock = manualClock(Date.parse(first));
  const idempotency = createIdempotency({ store: memoryStore({ clock }), clock });
  const planned: string[] = [];
  const fire = oncePerOccurrence(idempotency, { job: "report" }, (work) => {
    planned.push(work.plannedAt.toISOString());
  });
  const cron = new Cron(pattern, { timezone, paused: true, ...options });
  for (const time of times) {
    clock.jump(Date.parse(time) - clock.now());
    await fire(cron);
  }
  return planned;
}

describe("the planned instant", () => {
  it("is croner's, not the time of the call", async () => {
    const late = ["2026-03-01T02:00:00.342Z", "2026-03-01T02:00:09.001Z", "2026-03-01T09:00:00.000Z"];
    expect(await plannedAt("0 3 * * *", "Europe/Berlin", late)).toEqual(["2026-03-01T02:00:00.000Z"]);
  });

  it("is there in the very millisecond", async () => {
    const exact = ["2026-03-01T02:00:00.000Z"];
    expect(await plannedAt("0 3 * * *", "Europe/Berlin", exact)).toEqual(exact);
  });

  it("of a job that runs once is its date", async () => {
    expect(await plannedAt("2026-03-01T03:00:00", "UTC", ["2026-03-01T03:00:00.012Z"])).toEqual([
      "2026-03-01T03:00:00.000Z",
    ]);
  });
});

describe.each([
  {
    zone: "Europe/Berlin",
    gapAt: "2026-03-29T01:00:00.000Z",
    afterGap: "2026-03-30T00:30:00.000Z",
    fold: ["2026-10-25T00:30:00.000Z", "2026-10-25T01:30:00.000Z"],
    foldTime: "30 2",
  },
  {
    zone: "America/New_York",
    gapAt: "2026-03-08T07:00:00.000Z",
    afterGap: "2026-03-09T06:30:00.000Z",
    fold: ["2026-11-01T05:30:00.000Z", "2026-11-01T06:30:00.000Z"],
    foldTime: "30 1",
  },
])("where clocks change: $zone", ({ zone, gapAt, afterGap, fold, foldTime }) => {
  it("a time of day in the gap fires when the gap is over, as croner has it, and the next day at its time", async () => {
    expect(await plannedAt("30 2 * * *", zone, [gapAt, afterGap])).toEqual([gapAt, afterGap]);
  });

  it("a time of day that comes twice fires once, the first time", async () => {
    expect(await plannedAt(`${foldTime} * * *`, zone, fold)).toEqual([fold[0]]);
  });

  it("an hour that comes twice has two occurrences, which the instant in UTC keeps apart", async () => {
    expect(await plannedAt("30 * * * *", zone, [...fold, ...fold])).toEqual(fold);
  });
});

describe("a schedule whose instances cannot agree", () => {
  it("is refused when it fires: an interval that counts from the runs of each process", async () => {
    const events = recordEvents();
    const idempotency = createIdempotency({ store: memoryStore(), onEvent: events.listener });
    const run = vi.fn();
    const onError = vi.fn();
    const fire = oncePerOccurrence(idempotency, { job: "report", onError }, run);
    await fire(new Cron("* * * * * *", { paused: true, interval: 60 }));
    expect(run).not.toHaveBeenCalled();
    expect(onError.mock.calls[0]?.[0]).toMatchObject({ code: "CONFIGURATION_INVALID" });
    await fire(new Cron("* * * * * *", { paused: true }));
    expect(run).toHaveBeenCalledTimes(1);
  });
});

it("croner fires it by itself, and two instances run each second once", async () => {
  const store = memoryStore();
  onTestFinished(() => store.close());
  const planned: string[] = [];
  const start = (name: string) => {
    const idempotency = createIdempotency({ store });
    const job = oncePerOccurrence(idempotency, { job: "tick" }, ({ plannedAt: at }) => {
      planned.push(at.toISOString());
    });
    const cron = new Cron("* * * * * *", { timezone: "UTC", name: `${name}-${process.pid}` }, job);
    onTestFinished(() => cron.stop());
  };
  start("first");
  start("second");
  await vi.waitFor(() => expect(planned.length).toBeGreaterThanOrEqual(3), 15_000);
  expect(new Set(planned).size).toBe(planned.length);
  expect(planned.every((at) => at.endsWith(".000Z"))).toBe(true);
});
