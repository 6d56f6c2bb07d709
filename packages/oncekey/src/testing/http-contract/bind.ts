/**
 * @module
 * Runs the contract in whatever test runner has `describe` and `it`.
 */
import type { TestRunner } from "../test-runner.js";
import type { HttpCase } from "./case.js";
import { type HttpContractSetup, withContext } from "./context.js";

/**
 * Registers every case. A waived case is run too: it has to fail, or the waiver has outlived its reason.
 *
 * @throws Error if a waiver names no case.
 */
export function bindCases(
  { describe, it }: TestRunner,
  sections: Readonly<Record<string, readonly HttpCase[]>>,
  setup: HttpContractSetup,
): void {
  const waivers = setup.waivers ?? {};
  const names = new Set(Object.values(sections).flatMap((cases) => cases.map(({ name }) => name)));
  for (const waived of Object.keys(waivers)) {
    if (!names.has(waived)) throw new Error(`A waiver names no case of the contract: ${waived}`);
  }
  for (const [section, cases] of Object.entries(sections)) {
    describe(section, () => {
      for (const one of cases) {
        if (one.needs === "transactions" && setup.openTransactionalStore === undefined) continue;
        const waiver = waivers[one.name];
        if (waiver === undefined) it(one.name, () => withContext(setup, one.run));
        else it(`waived: ${one.name} (${waiver})`, () => expectFailure(setup, one));
      }
    });
  }
}

async function expectFailure(setup: HttpContractSetup, { name, run }: HttpCase): Promise<void> {
  try {
    await withContext(setup, run);
  } catch {
    return;
  }
  throw new Error(`Waived, but it passes: take the waiver of "${name}" away`);
}
