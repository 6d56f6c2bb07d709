/**
 * @module test/servers/faults/clocks
 *
 * Applications whose wall clocks are minutes off share keys with ones whose clocks are right. Whose store has a clock of its own must not
 * notice; SQLite has its host's, which its processes share by nature.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { answered, PASSING } from "./asking.js";
import { LEASE_MS, type Subject } from "./subject.js";

const MINUTES = 60_000;

export function clockSuite(subject: Subject): void {
  describe.each([-10 * MINUTES, 10 * MINUTES])("an app whose clock is off by %i ms", (clockOffMs) => {
    const guarantee = "at-least-once";

    it("meets a live claim: it is live", { timeout: 120_000 }, async (context) => {
      const place = await subject.place(context);
      let begun = () => {};
      let goOn = () => {};
      const working = new Promise<void>((resolve) => {
        begun = resolve;
      });
      const onPoint = () =>
        new Promise<void>((resolve) => {
          goOn = resolve;
          begun();
        });
      const [label, caller, app] = [
        place.label("k"),
        await place.caller({ onPoint }),
        await place.app({ clockOffMs }),
      ];
      const first = answered(() => caller.call({ label, guarantee, haltAt: "claimed" }));
      await working;
      for (let n = 0; n < 5; n += 1) {
        const outcome = await answered(() => app.call({ label, guarantee }));
        expect(outcome).toEqual({ kind: "refused", code: "IN_FLIGHT" });
        await sleep(LEASE_MS / 4);
      }
      goOn();
      expect(await first).toMatchObject({ kind: "executed" });
      expect(await answered(() => app.call({ label, guarantee }), PASSING)).toEqual({
        ...(await first),
        kind: "replayed",
      });
      expect(await place.effects(label, guarantee)).toBe(1);
      await place.verify(label, guarantee);
    });

    it("holds a claim: others respect it, and no longer than its lease", {
      timeout: 120_000,
    }, async (context) => {
      const place = await subject.place(context);
      const [label, caller, app] = [place.label("k"), await place.caller(), await place.app({ clockOffMs })];
      const halted = app.halted(label);
      void app.call({ label, guarantee, haltAt: "claimed" });
      await halted;
      await sleep(LEASE_MS * 1.2);
      expect(await answered(() => caller.call({ label, guarantee }))).toEqual({
        kind: "refused",
        code: "IN_FLIGHT",
      });
      await app.kill();
      const startedAt = performance.now();
      const waiting = { label, guarantee, waitMs: 3 * LEASE_MS } as const;
      expect(await answered(() => caller.call(waiting), PASSING)).toMatchObject({ kind: "executed" });
      expect(performance.now() - startedAt).toBeLessThan(3 * LEASE_MS);
      await place.verify(label, guarantee);
    });

    it("completes: it is kept for the retention, neither forgotten at once nor for longer", {
      timeout: 120_000,
    }, async (context) => {
      const place = await subject.place(context);
      const policy = { retentionMs: 2 * LEASE_MS };
      const [label, caller, app] = [
        place.label("k"),
        await place.caller({ policy }),
        await place.app({ clockOffMs, policy }),
      ];
      const first = await app.call({ label, guarantee });
      expect(first).toMatchObject({ kind: "executed" });
      await caller.store.purge(1_000);
      expect(await answered(() => caller.call({ label, guarantee }))).toEqual({ ...first, kind: "replayed" });
      await sleep(2.2 * LEASE_MS);
      expect(await answered(() => app.call({ label, guarantee }))).toMatchObject({ kind: "executed" });
    });
  });
}
