/**
 * @module
 * What the contracts need of a test runner, and how they give it their cases.
 *
 * Invariant: a waiver is as true as a promise. A waived case is run too and has to fail, and a waiver that names no case
 * is a mistake.
 */

/** What Vitest, Jest, Mocha and `node:test` have in common. */
export interface TestRunner {
  describe(name: string, body: () => void): unknown;
  it(name: string, body: () => Promise<void>): unknown;
}

/** Reasons by what they excuse. */
export type Waivers = Readonly<Record<string, string>>;

/** @throws Error if a waiver excuses what is not in `known`. */
export function checkWaivers(waivers: Waivers, known: ReadonlySet<string>): void {
  const idle = Object.keys(waivers).filter((name) => !known.has(name));
  if (idle.length > 0) throw new Error(`There is no case and no group to waive named: ${idle.join("; ")}`);
}

/** Registers one case. `waiver`: why it has to fail. */
export function registerCase(
  runner: TestRunner,
  name: string,
  waiver: string | undefined,
  run: () => Promise<void>,
): void {
  if (waiver === undefined) runner.it(name, run);
  else runner.it(`${name} (waived: ${waiver})`, () => hasToFail(name, run));
}

async function hasToFail(name: string, run: () => Promise<void>): Promise<void> {
  try {
    await run();
  } catch {
    return;
  }
  throw new Error(`"${name}" passes, so it need not be waived`);
}
