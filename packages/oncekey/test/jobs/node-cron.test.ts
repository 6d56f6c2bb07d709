/**
 * Jobs of node-cron: the planned instant is the one that it passes.
 */
import { Cron } from "croner";
import { createTask, schedule, type TaskContext } from "node-cron";
import { createIdempotency } from "oncekey";
import { type NodeCronOptions, oncePerOccurrence } from "oncekey/jobs/node-cron";
import { memoryStore } from "oncekey/stores/memory";
import { manualClock } from "oncekey/testing";
import { describe, expect, it, onTestFinished, vi } from "vitest";

const at = (text: string) => new Date(`2026-${text}Z`);

function place(startsAt: Date, options: Partial<NodeCronOptions<"at-least-once">> = {}) {
  const clock = manualClock(startsAt.getTime());
  const idempotency = createIdempotency({ store: memoryStore({ clock }), clock });
  const planned: string[] = [];
  const job = oncePerOccurrence(idempotency, { job: "report", ...options }, ({ plannedAt }) => {
    planned.push(plannedAt.toISOString().slice(5, 16));
  });
  return { clock, planned, job };
}

/** A task that does not fire by itself. */
function taskOf(pattern: string, timezone = "UTC") {
  return createTask(pattern, () => undefined, { timezone });
}

const contextOf = (date: Date, task?: TaskContext["task"]): TaskContext =>
  ({ date, task, triggeredAt: date, dateLocalIso: "" }) as TaskContext;

it("runs once for each date that node-cron passes, however late and often it is called", async () => {
  const { clock, planned, job } = place(at("03-01T03:00:00.200"));
  const task = taskOf("0 3 * * *");
  await job(contextOf(at("03-01T03:00:00.000"), task));
  await clock.advance(5_000);
  await job(contextOf(at("03-01T03:00:00.000"), task));
  await job(contextOf(at("03-01T03:00:00.000")));
  expect(planned).toEqual(["03-01T03:00"]);
});

it("keeps the two hours apart that a night has twice", async () => {
  const { clock, planned, job } = place(at("10-25T00:30:00"));
  const task = taskOf("30 * * * *", "Europe/Berlin");
  await job(contextOf(at("10-25T00:30:00"), task));
  await clock.advance(3_600_000);
  await job(contextOf(at("10-25T01:30:00"), task));
  expect(planned).toEqual(["10-25T00:30", "10-25T01:30"]);
});

describe("missed occurrences", () => {
  it("are found with croner's calendar", async () => {
    const { clock, planned, job } = place(at("03-01T03:00:00"), { missed: "all", Cron, timeZone: "UTC" });
    const task = taskOf("0 3 * * *");
    await job(contextOf(at("03-01T03:00:00"), task));
    await clock.advance(2 * 86_400_000 + 3_600_000);
    await job.catchUp(task);
    expect(planned).toEqual(["03-01T03:00", "03-02T03:00", "03-03T03:00"]);
  });

  it("are only those that node-cron would have fired: in a gap croner fires, and node-cron does not", async () => {
    const timeZone = "Europe/Berlin";
    const { clock, planned, job } = place(at("03-28T01:30:00"), { missed: "all", Cron, timeZone });
    const task = taskOf("30 2 * * *", timeZone);
    await job(contextOf(at("03-28T01:30:00"), task));
    await clock.advance(2 * 86_400_000);
    await job.catchUp(task);
    expect(planned).toEqual(["03-28T01:30", "03-30T00:30"]);
  });

  it("need croner, and that is said when the job is made", () => {
    expect(() => place(at("03-01T00:00:00"), { missed: "latest" })).toThrow(/missed needs Cron/);
  });
});

it("node-cron fires it by itself, and two instances run each second once", async () => {
  const store = memoryStore();
  onTestFinished(() => store.close());
  const planned: string[] = [];
  for (let instance = 0; instance < 2; instance++) {
    const idempotency = createIdempotency({ store });
    const job = oncePerOccurrence(idempotency, { job: "tick" }, ({ plannedAt }) => {
      planned.push(plannedAt.toISOString());
    });
    const task = schedule("* * * * * *", job, { timezone: "UTC" });
    onTestFinished(() => void task.destroy());
  }
  await vi.waitFor(() => expect(planned.length).toBeGreaterThanOrEqual(3), 15_000);
  expect(new Set(planned).size).toBe(planned.length);
});
