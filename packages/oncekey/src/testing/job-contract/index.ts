/**
 * @module
 * The contract of schedulers: what a job owes whose instances all fire, as data, tied to no test runner and to no scheduler.
 *
 * Invariant: as in the contract of stores, a waiver of a promise that is kept is itself a failure.
 */
import { systemClock } from "../../core/clock.js";
import { checkWaivers, registerCase, type TestRunner, type Waivers } from "../test-runner.js";
import { contextOf, type JobCase, type JobSubject } from "./context.js";
import { crashing } from "./crashing.js";
import { firing } from "./firing.js";
import { making } from "./making-up.js";

export type {
  JobBehaviour,
  JobCase,
  JobContext,
  JobInstance,
  JobInstanceOptions,
  JobLine,
  JobSubject,
} from "./context.js";
export { JOB_LEASE_MS } from "./context.js";

/** All promises, each with what goes wrong for a user if it is broken. */
export const jobContract: readonly JobCase[] = [...firing, ...crashing, ...making];

export interface JobContractSetup {
  /** Makes a store, a job's name and a log that nobody else has; called once for each case. */
  open(): JobSubject | Promise<JobSubject>;
  /** Cases, by name, that do not hold, with the reason why not. */
  readonly waivers?: Waivers | undefined;
}

/**
 * Registers the contract with a test runner.
 *
 * @example bindJobContract({ describe, it }, { open: () => startedIn(processes) });
 */
export function bindJobContract(runner: TestRunner, setup: JobContractSetup): void {
  const { waivers = {} } = setup;
  checkWaivers(waivers, new Set(jobContract.map(({ name }) => name)));
  runner.describe("jobs", () => {
    for (const one of jobContract) {
      registerCase(runner, one.name, waivers[one.name], () => runJobCase(one, setup));
    }
  });
}

/** Runs one case; rejects if its promise is broken. */
export async function runJobCase(one: JobCase, setup: JobContractSetup): Promise<void> {
  const subject = await setup.open();
  try {
    await one.run(contextOf(subject, sleep));
  } finally {
    await subject.dispose();
  }
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => {
    systemClock.setTimer(resolve, ms);
  });
}
