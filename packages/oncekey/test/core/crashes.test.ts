import { describe, expect, it } from "vitest";
import { codeOf, silent, type World, world } from "./processes.js";

const LEASE_MS = 30_000;

describe("a crash", () => {
  const crashed = (place: World, policy = {}) => {
    const dead = place.another(policy);
    place.wire.on("extend", silent);
    void dead.run({}, () => new Promise(() => undefined)).catch(() => undefined);
    return place.clock.settle();
  };

  it("frees the key within one lease, not after its retention", async () => {
    const place = world({ onInFlight: "reject", retentionMs: 86_400_000 });
    await crashed(place);
    const { process, clock } = place;
    await clock.advance(LEASE_MS - 1);
    const early = codeOf(process.run({}, () => "second"));
    await clock.settle();
    expect(await early).toBe("IN_FLIGHT");
    await clock.advance(1);
    const takeover = process.run({}, () => "second");
    await clock.settle();
    expect(await takeover).toEqual({ kind: "executed", result: "second", attempt: 2 });
  });

  it("keeps the fingerprint: another body under its key is a mismatch, not a second run", async () => {
    const place = world();
    await crashed(place);
    await place.clock.advance(2 * LEASE_MS);
    const other = codeOf(place.process.run({ input: 2 }, () => "second"));
    await place.clock.settle();
    expect(await other).toBe("KEY_REUSED");
  });

  it("under at-most-once leaves an unknown outcome, also for a caller with a laxer policy", async () => {
    const place = world({ guarantee: "at-most-once" });
    await crashed(place);
    await place.clock.advance(2 * LEASE_MS);
    for (const guarantee of ["at-most-once", "at-least-once"] as const) {
      const repeat = codeOf(place.process.run({ guarantee }, () => "second"));
      await place.clock.settle();
      expect(await repeat).toBe("OUTCOME_UNKNOWN");
    }
  });

  it("tells those who wait at once what it means to them: unknown, or an attempt that failed", async () => {
    for (const [guarantee, code] of [
      ["at-most-once", "OUTCOME_UNKNOWN"],
      ["at-least-once", "ATTEMPT_FAILED"],
    ] as const) {
      const place = world({ guarantee, onInFlight: { waitMs: 3 * LEASE_MS, onReleased: "refuse" } });
      await crashed(place);
      const repeats = [1, 2].map(() => codeOf(place.process.run({}, () => "second")));
      await place.clock.advance(LEASE_MS + 600);
      expect(await Promise.all(repeats)).toEqual([code, code]);
    }
  });

  it("of a lax caller is unknown to a strict one: the stricter rule of the two counts", async () => {
    const place = world();
    await crashed(place);
    await place.clock.advance(2 * LEASE_MS);
    const repeat = codeOf(place.process.run({ guarantee: "at-most-once" }, () => "second"));
    await place.clock.settle();
    expect(await repeat).toBe("OUTCOME_UNKNOWN");
  });
});
