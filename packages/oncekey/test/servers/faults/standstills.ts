/**
 * @module test/servers/faults/standstills
 *
 * A process stands still in the middle of its work (SIGSTOP) for longer than its lease, another one meets the key, and the first goes
 * on (SIGCONT) as if nothing had been.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Guarantee } from "oncekey";
import { describe, expect, it, type TestContext } from "vitest";
import type { CallOptions, Outcome, Point } from "./apps/caller.mjs";
import { answered, PASSING } from "./asking.js";
import { LEASE_MS, type Place, type Subject } from "./subject.js";

interface Scene {
  readonly place: Place;
  readonly call: CallOptions;
  /** What another process was told meanwhile. */
  readonly other: Outcome;
  /** What the one that stood still was told in the end. */
  readonly own: Outcome;
}

/** Stands still at `haltAt` until its lease is over and `meanwhile` has been told something. */
async function standStill(
  subject: Subject,
  context: TestContext,
  options: Omit<CallOptions, "label">,
  meanwhile: "another" | "nobody",
): Promise<Scene> {
  const place = await subject.place(context);
  const call = { ...options, label: place.label("k") };
  const app = await place.app();
  const halted = app.halted(call.label);
  const own = app.call(call);
  await halted;
  app.pause();
  await sleep(LEASE_MS * 1.2);
  const caller = await place.caller();
  const other =
    meanwhile === "another"
      ? await answered(() => caller.call({ label: call.label, guarantee: options.guarantee }), PASSING)
      : ({ kind: "refused", code: "nobody asked" } as const);
  app.resume();
  app.go(call.label);
  return { place, call, other, own: await own };
}

/** Where a transaction is open, SQLite lets nobody else in: there the first one has to stand still before its first statement. */
function pointsOf({ writersExclude }: Subject, guarantee: Guarantee): readonly Point[] {
  return writersExclude && guarantee === "exactly-once" ? ["claimed"] : ["claimed", "after-effect"];
}

/** Who asks before its effect hears that it is too late; what had its effect is still true, however late it says so. */
function expectHeld({ other, own }: Scene, haltedAt: Point): void {
  expect(other).toEqual({ kind: "refused", code: "OUTCOME_UNKNOWN" });
  expect(own.kind).toBe(haltedAt === "claimed" ? "refused" : "executed");
}

/** The one that stood still gets what is on record, or a refusal; no result of its own that repeats would not get. */
function expectTakenOver({ place, call, other, own }: Scene): void {
  expect(other).toMatchObject({ kind: "executed" });
  expect(place.events(call.label)).toContain("takeover");
  if (own.kind === "refused") expect(["LEASE_LOST", "NOT_COMMITTED"]).toContain(own.code);
  // Its own result is all that it has if the store does not answer at just that moment, which an event says.
  else if (own.kind === "executed") expect(place.events(call.label)).toContain("completion-failed");
  else expect(own).toEqual({ ...other, kind: "replayed" });
}

/** At-least-once repeats what was not recorded; at-most-once repeats nothing, though nothing may have happened. */
function effectsOf(guarantee: Guarantee, haltedAt: Point): number {
  if (guarantee === "at-least-once" && haltedAt === "after-effect") return 2;
  if (guarantee === "at-most-once" && haltedAt === "claimed") return 0;
  return 1;
}

export function standstillSuite(subject: Subject): void {
  describe.each(subject.guarantees)("%s: a process stands still past its lease", (guarantee) => {
    it.for(pointsOf(subject, guarantee))(
      "%s; another one meets the key meanwhile",
      { timeout: 120_000 },
      async (haltAt, context) => {
        const scene = await standStill(subject, context, { guarantee, haltAt, confirms: true }, "another");
        if (guarantee === "at-most-once") expectHeld(scene, haltAt);
        else expectTakenOver(scene);
        const { place, call } = scene;
        expect(await place.effects(call.label, guarantee)).toBe(effectsOf(guarantee, haltAt));
        await place.verify(call.label, guarantee);
      },
    );

    it("nobody meets the key: its late completion is taken", {
      timeout: 120_000,
    }, async (context) => {
      const haltAt = subject.writersExclude && guarantee === "exactly-once" ? "claimed" : "after-effect";
      const { place, call, own } = await standStill(subject, context, { guarantee, haltAt }, "nobody");
      expect(own).toMatchObject({ kind: "executed" });
      const caller = await place.caller();
      const repeat = await answered(() => caller.call({ label: call.label, guarantee }));
      expect(repeat).toEqual({ ...own, kind: "replayed" });
      expect(await place.effects(call.label, guarantee)).toBe(1);
      await place.verify(call.label, guarantee);
    });
  });
}
