/**
 * @module
 * Runs the contract in whatever test runner has `describe` and `it`.
 */
import { checkWaivers, registerCase, type TestRunner } from "../test-runner.js";
import type { HttpCase } from "./case.js";
import { type HttpContractSetup, withContext } from "./context.js";

/** Registers every case. @throws Error if a waiver names no case. */
export function bindCases(
  runner: TestRunner,
  sections: Readonly<Record<string, readonly HttpCase[]>>,
  setup: HttpContractSetup,
): void {
  const { waivers = {} } = setup;
  checkWaivers(waivers, new Set(Object.values(sections).flatMap((cases) => cases.map(({ name }) => name))));
  for (const [section, cases] of Object.entries(sections)) {
    runner.describe(section, () => {
      for (const { name, needs, run } of cases) {
        if (needs === "transactions" && setup.openTransactionalStore === undefined) continue;
        registerCase(runner, name, waivers[name], () => withContext(setup, run));
      }
    });
  }
}
