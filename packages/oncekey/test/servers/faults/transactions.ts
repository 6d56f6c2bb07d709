/**
 * @module test/servers/faults/transactions
 *
 * What only a database does to its clients: it ends their connections, refuses their commits, makes them wait for each other, and has
 * no connection left. Under exactly-once a result exists if and only if its row does.
 */
import { describe, expect, it } from "vitest";
import { faultProxy } from "../support/fault-proxy.js";
import { answered, PASSING } from "./asking.js";
import { LEASE_MS, type Place, type SharedSubject, sharedSubject } from "./subject.js";

const guarantee = "exactly-once";
const isCommit = (request: Buffer): boolean => request.toString("latin1").includes("COMMIT");
const timeout = 90_000;
/** What the one that has to give way is told: by its statement, or by its transaction. */
const VICTIM = [...PASSING, "DATABASE_REFUSED", "TRANSACTION_ABORTED"];

/** @param separate a database of its own, for tests that stand in everybody's way */
export function transactionSuite(subject: SharedSubject, separate: () => Promise<string>): void {
  describe("a database refuses", () => {
    it("two transactions that wait for each other: one is refused and leaves nothing, and can be asked again", {
      timeout,
    }, async (context) => {
      const place = await subject.place(context);
      const [one, two] = await Promise.all([place.caller(), place.caller()]);
      const [a, b] = [place.label("a"), place.label("b")];
      const outcomes = await Promise.all([
        answered(() => one.call({ label: a, guarantee, touches: [1, 2] }), VICTIM),
        answered(() => two.call({ label: b, guarantee, touches: [2, 1] }), VICTIM),
      ]);
      expect(outcomes.map(({ kind }) => kind)).toEqual(["executed", "executed"]);
      expect(await rowsOf(place, [a, b])).toEqual([1, 1]);
      const events = [a, b].flatMap((label) => place.events(label));
      expect(events.filter((type) => type === "released" || type === "not-committed")).not.toEqual([]);
    });

    it("a long transaction: its retention counts from its end, not from its beginning", {
      timeout,
    }, async (context) => {
      const place = await subject.place(context);
      const [caller, label] = [await place.caller(), place.label("k")];
      await answered(() => caller.call({ label, guarantee, touches: [1, 1, 1, 1] }), VICTIM);
      const { ageMs = 0, inStateMs = 0 } = (await caller.find(label)) ?? {};
      expect(ageMs - inStateMs).toBeGreaterThanOrEqual(600);
    });

    it.for(["before", "after"] as const)(
      "the connection dies %s COMMIT arrives",
      { timeout },
      async (cut, context) => {
        const place = await subject.place(context);
        const proxy = await faultProxy(subject.address);
        context.onTestFinished(proxy.flow);
        let sprung: Promise<void> | undefined;
        const onPoint = async () => {
          sprung ??= cut === "before" ? proxy.cutBeforeNext(isCommit) : proxy.cutAfterNext(isCommit);
        };
        const caller = await place.caller({ address: proxy.url, onPoint });
        const label = place.label("k");
        const haltAt = "before-completion";
        const first = await answered(() => caller.call({ label, guarantee, haltAt }));
        await sprung;
        const [rows] = await rowsOf(place, [label]);
        // The row decides: a result is never given without it, and a row is never there without a result for the repeat.
        if (first.kind === "executed") expect(rows).toBe(1);
        const repeat = await answered(() => caller.call({ label, guarantee }), PASSING);
        if (rows === 1) expect(repeat.kind).toBe("replayed");
        expect(await rowsOf(place, [label])).toEqual([1]);
        await place.verify(label, guarantee);
      },
    );

    it("its connection is ended by the server just before COMMIT: nothing is kept, and it is run again", {
      timeout,
    }, async (context) => {
      const own = await sharedSubject(subject.storeName, await separate(), subject.guarantees);
      context.onTestFinished(own.close);
      const place = await own.place(context);
      const proxy = await faultProxy(own.address);
      context.onTestFinished(proxy.close);
      let ended: number | undefined;
      const onPoint = async () => {
        if (ended !== undefined) return;
        ended = 0;
        proxy.actBeforeNext(isCommit, async () => {
          ended = await place.outsider.terminateOpen?.();
        });
      };
      const caller = await place.caller({ address: proxy.url, onPoint });
      const label = place.label("k");
      const first = await answered(
        () => caller.call({ label, guarantee, haltAt: "before-completion" }),
        PASSING,
      );
      expect(ended).toBe(1);
      expect(first.kind).toBe("executed");
      expect(place.events(label).filter((type) => type === "not-committed")).not.toEqual([]);
      expect(await rowsOf(place, [label])).toEqual([1]);
      await place.verify(label, guarantee);
    });

    it("a pool of one connection: ten repeats of a key and ten other keys are all answered", {
      timeout,
    }, async (context) => {
      const place = await subject.place(context);
      const caller = await place.caller({ opening: { small: true } });
      const labels = Array.from({ length: 10 }, (_, n) => place.label(`k${n}`));
      const first = labels[0] ?? "";
      const waitMs = 3 * LEASE_MS;
      const repeats = Array.from(
        { length: 10 },
        () => ({ label: first, guarantee, waitMs, workMs: 100 }) as const,
      );
      const others = labels.map((label) => ({ label, guarantee, waitMs, workMs: 20 }) as const);
      const calls = [...repeats, ...others];
      const outcomes = await Promise.all(calls.map((call) => answered(() => caller.call(call), PASSING)));
      for (const outcome of outcomes) expect(outcome).not.toMatchObject({ kind: "refused" });
      expect(await rowsOf(place, labels)).toEqual(labels.map(() => 1));
    });

    it("its connections are ended while claims wait: they are made again, and land once", {
      timeout,
    }, async (context) => {
      const own = await sharedSubject(subject.storeName, await separate(), subject.guarantees);
      context.onTestFinished(own.close);
      const place = await own.place(context);
      const caller = await place.caller();
      const labels = Array.from({ length: 5 }, (_, n) => place.label(`k${n}`));
      const unblock = await place.outsider.blockRecords?.();
      const calls = labels.map((label) => answered(() => caller.call({ label, guarantee }), PASSING));
      let ended = 0;
      while (ended === 0) ended = (await place.outsider.terminateWaiting?.()) ?? 1;
      await unblock?.();
      for (const outcome of await Promise.all(calls))
        expect(["executed", "replayed"]).toContain(outcome.kind);
      expect(await rowsOf(place, labels)).toEqual(labels.map(() => 1));
      for (const label of labels) await place.verify(label, guarantee);
    });
  });
}

function rowsOf(place: Place, labels: readonly string[]): Promise<number[]> {
  return Promise.all(labels.map((label) => place.effects(label, guarantee)));
}
