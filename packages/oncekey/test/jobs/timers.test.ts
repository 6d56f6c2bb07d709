/**
 * Jobs of schedulers that pass nothing, and what a job says of its options.
 */
import { Cron } from "croner";
import { createIdempotency } from "oncekey";
import { type JobOptions, oncePerOccurrence, type ScheduleOptions } from "oncekey/jobs";
import { memoryStore } from "oncekey/stores/memory";
import { manualClock } from "oncekey/testing";
import { describe, expect, it, onTestFinished, vi } from "vitest";

function place(startsAt: string, options: ScheduleOptions & Partial<JobOptions<"at-least-once">>) {
  const clock = manualClock(Date.parse(startsAt));
  const idempotency = createIdempotency({ store: memoryStore({ clock }), clock });
  const planned: string[] = [];
  const fire = oncePerOccurrence(idempotency, { job: "report", ...options }, ({ plannedAt }) => {
    planned.push(plannedAt.toISOString());
  });
  return { clock, planned, fire };
}

const berlin = { schedule: "0 3 * * *", timeZone: "Europe/Berlin", Cron };

describe("a schedule that is given in the options", () => {
  it("says what a call is for, a little early and long after", async () => {
    const { clock, planned, fire } = place("2026-03-01T01:59:59.997Z", berlin);
    await fire();
    await clock.advance(3 * 3_600_000);
    await fire();
    await clock.advance(21 * 3_600_000);
    await fire();
    expect(planned).toEqual(["2026-03-01T02:00:00.000Z", "2026-03-02T02:00:00.000Z"]);
  });

  it("makes up for what was missed", async () => {
    const { clock, planned, fire } = place("2026-03-01T02:00:00Z", { ...berlin, missed: "latest" });
    await fire();
    await clock.advance(3 * 86_400_000 + 3_600_000);
    await fire.catchUp();
    expect(planned).toEqual(["2026-03-01T02:00:00.000Z", "2026-03-04T02:00:00.000Z"]);
  });
});

it("timers of two instances with the same period and other phases run each period once", async () => {
  const { clock, planned, fire } = place("2026-03-01T00:00:00.000Z", { everyMs: 10_000 });
  for (let elapsedMs = 0; elapsedMs < 60_000; elapsedMs += 500) {
    if (elapsedMs % 10_000 === 3_500 || elapsedMs % 10_000 === 9_500) await fire();
    await clock.advance(500);
  }
  expect(new Set(planned).size).toBe(planned.length);
  expect(planned.length).toBeGreaterThanOrEqual(6);
});

it("a plain interval of this process runs each period once", async () => {
  const store = memoryStore();
  onTestFinished(() => store.close());
  const planned: number[] = [];
  for (let instance = 0; instance < 2; instance++) {
    const fire = oncePerOccurrence(createIdempotency({ store }), { job: "tick", everyMs: 200 }, (work) => {
      planned.push(work.plannedAt.getTime());
    });
    const timer = setInterval(fire, 200);
    onTestFinished(() => clearInterval(timer));
  }
  await vi.waitFor(() => expect(planned.length).toBeGreaterThanOrEqual(5), 15_000);
  expect(new Set(planned).size).toBe(planned.length);
  expect(planned.every((ms) => ms % 200 === 0)).toBe(true);
});

describe("options that cannot be meant", () => {
  const idempotency = createIdempotency({ store: memoryStore() });
  const problemsOf = (options: unknown, run: unknown = () => undefined): readonly string[] => {
    try {
      oncePerOccurrence(idempotency, options as never, run as never);
    } catch (error) {
      return (error as { problems: readonly string[] }).problems;
    }
    return [];
  };

  it("are named, all at once, when the job is made", () => {
    const problems = problemsOf(
      { job: "", everyMs: 0, windowMs: -1, overlap: "maybe", missed: "some", maxMissed: 0, leasMs: 5 },
      "not a function",
    );
    expect(problems.map((problem) => problem.split(" ")[0]).toSorted()).toEqual(
      [
        "job",
        "everyMs",
        "windowMs",
        "overlap",
        "missed",
        "maxMissed",
        "leasMs",
        "the",
        "windowMs",
      ].toSorted(),
    );
  });

  it("are named: a window in which no crash could be noticed, a memory shorter than the window", () => {
    const job = { job: "report", everyMs: 60_000 };
    expect(problemsOf({ ...job, windowMs: 30_000 })).toEqual([
      expect.stringMatching(/^windowMs must be longer/),
    ]);
    expect(problemsOf({ ...job, windowMs: 60_000, retentionMs: 50_000 })).toEqual([
      expect.stringMatching(/^retentionMs must be at least windowMs/),
    ]);
  });

  it("are named: what makes no sense for a job", () => {
    const job = { job: "report", everyMs: 60_000 };
    expect(problemsOf({ ...job, onInFlight: "reject", onCompleted: "reject", keep: () => true })).toEqual([
      "onInFlight is not an option",
      "onCompleted is not an option",
      "keep is not an option",
    ]);
  });

  it("are named: a schedule that is not there, cannot be read, or is there twice", () => {
    expect(problemsOf({ job: "report" })).toContain("everyMs or schedule must say when it fires");
    expect(problemsOf({ job: "report", ...berlin, schedule: "61 * * * *" })).toEqual([
      expect.stringMatching(/^schedule cannot be read/),
    ]);
    expect(problemsOf({ job: "report", ...berlin, everyMs: 5 })).toContain(
      "everyMs and schedule are two schedules: give one",
    );
  });

  it("are refused: a guarantee that the store cannot give", () => {
    expect(() =>
      oncePerOccurrence(
        idempotency,
        { job: "report", everyMs: 5, guarantee: "exactly-once" as never },
        vi.fn(),
      ),
    ).toThrow(/no transactions/);
  });
});
