/**
 * @module
 * What every adapter for a broker has to do, as data: cases on a real broker, tied to no test runner.
 *
 * A client is put under it by a few lines that say how it publishes and consumes (`ConsumerSubject`), a worker process that kills
 * itself where it is told to, and waivers for what the broker cannot do.
 */
import { checkWaivers, registerCase, type TestRunner } from "../test-runner.js";
import { usualCases } from "./cases.js";
import { type ConsumerCase, type ConsumerContractSetup, runConsumerCase } from "./context.js";
import { faultCases } from "./fault-cases.js";

export type {
  ConsumerCase,
  ConsumerContext,
  ConsumerContractSetup,
  ConsumerSubject,
  Consuming,
  ContractConsumer,
  ContractHandler,
  ContractMessage,
  CrashPoint,
} from "./context.js";
export { CRASHING_CONSUMER } from "./context.js";

/** All cases, in the order they are run. */
export const consumerContract: readonly ConsumerCase[] = [...usualCases, ...faultCases];

/**
 * Registers the contract with a test runner. A case may take some seconds.
 *
 * @example bindConsumerContract({ describe, it }, { open: async () => mySubject() });
 */
export function bindConsumerContract(runner: TestRunner, setup: ConsumerContractSetup): void {
  const { waivers = {} } = setup;
  checkWaivers(waivers, new Set(consumerContract.map(({ name }) => name)));
  runner.describe("the contract of consumers", () => {
    for (const one of consumerContract) {
      registerCase(runner, one.name, waivers[one.name], () => runConsumerCase(one, setup));
    }
  });
}
