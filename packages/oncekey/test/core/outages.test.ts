import { describe, expect, it } from "vitest";
import { isOncekeyError } from "../../src/core/errors.js";
import { answerLost, codeOf, leftovers, refused, silent, world } from "./processes.js";

describe("a store that misbehaves in any call", () => {
  const methods = ["claim", "extend", "complete", "release", "markUnknown", "status"] as const;
  const faults = {
    throws: () => {
      throw new TypeError("not connected");
    },
    rejects: refused,
    hangs: silent,
    "loses the answer": answerLost,
    "answers too late": async (_: unknown, next: () => Promise<unknown>) => {
      await new Promise((resolve) => setTimeout(resolve, 5));
      return next();
    },
  } as const;

  for (const method of methods) {
    for (const [name, fault] of Object.entries(faults)) {
      it(`${name} in ${method}: everybody is answered in time, the work runs at most once`, async () => {
        const unhandled: unknown[] = [];
        const note = (reason: unknown): void => void unhandled.push(reason);
        process.on("unhandledRejection", note);
        const { process: one, wire, clock, another } = world();
        wire.on(method, fault);
        let ran = 0;
        const work = async () => {
          ran += 1;
          await new Promise<void>((resolve) => clock.setTimer(resolve, 12_000));
          return "done";
        };
        const two = another();
        const calls = [one, one, two, two].map((process) => codeOf(process.run({}, work)));
        const failing = codeOf(
          one.run({ key: "failing" }, () => {
            throw new Error("declined");
          }),
        );
        for (let turn = 0; turn < 40; turn++) await clock.advance(500);
        const answers = await Promise.all(calls);
        for (const answer of answers) {
          if (typeof answer === "object") expect(answer).toMatchObject({ result: "done" });
          else expect(["STORE_UNAVAILABLE", "IN_FLIGHT"]).toContain(answer);
        }
        const failed = await failing;
        expect(failed instanceof Error || failed === "STORE_UNAVAILABLE").toBe(true);
        expect(isOncekeyError(failed, "KEY_REUSED")).toBe(false);
        expect(ran).toBeLessThanOrEqual(1);
        process.off("unhandledRejection", note);
        expect(unhandled).toEqual([]);
        expect([leftovers(one), leftovers(two)]).toEqual(Array(2).fill({ here: 0, waiting: 0 }));
      });
    }
  }
});
