/**
 * @module
 * What the contracts need of a test runner.
 */

/** What Vitest, Jest, Mocha and `node:test` have in common. */
export interface TestRunner {
  describe(name: string, body: () => void): unknown;
  it(name: string, body: () => Promise<void>): unknown;
}
