/**
 * @module
 * What every HTTP adapter has to do, as data: cases over raw sockets against a real server of its framework.
 *
 * A framework is put under it by a few lines that say how it serves a route (`HttpContractSetup`), and by
 * waivers for what it cannot do.
 */
import type { TestRunner } from "../test-runner.js";
import { bindCases } from "./bind.js";
import type { HttpCase } from "./case.js";
import { endingCases } from "./cases/endings.js";
import { fingerprintCases } from "./cases/fingerprint.js";
import { guaranteeCases } from "./cases/guarantees.js";
import { inFlightCases } from "./cases/in-flight.js";
import { keyCases } from "./cases/key.js";
import { limitCases } from "./cases/limits.js";
import { processCases } from "./cases/processes.js";
import { refusalCases } from "./cases/refusals.js";
import { replayCases } from "./cases/replay.js";
import { replayedHeaderCases } from "./cases/replayed-headers.js";
import { scopeCases } from "./cases/scope.js";
import { storeFaultCases } from "./cases/store-faults.js";
import { streamCases } from "./cases/streams.js";
import type { HttpContractSetup } from "./context.js";

export type { TestRunner } from "../test-runner.js";
export type { HttpCase } from "./case.js";
export type {
  ContractApp,
  ContractServer,
  HttpContractContext,
  HttpContractSetup,
  RunningServer,
  ServeOptions,
  TransactionalStore,
} from "./context.js";
export type { RawExchange } from "./raw-client.js";
export { exchange } from "./raw-client.js";
export type { HeaderLine, RawRequest, RawResponse } from "./raw-message.js";
export type { BoundRoute, ContractRoute, HandlerRequest, Parses, ReadHeader, Reply } from "./route.js";
export { startServer } from "./running-server.js";

const SECTIONS = {
  replay: replayCases,
  "replayed headers": replayedHeaderCases,
  key: keyCases,
  fingerprint: fingerprintCases,
  scope: scopeCases,
  "in flight": inFlightCases,
  endings: endingCases,
  streams: streamCases,
  limits: limitCases,
  "store faults": storeFaultCases,
  processes: processCases,
  refusals: refusalCases,
  guarantees: guaranteeCases,
} as const satisfies Readonly<Record<string, readonly HttpCase[]>>;

/** All cases, in the order they are run. */
export const httpContract: readonly HttpCase[] = Object.values(SECTIONS).flat();

/**
 * Registers the contract with a test runner.
 *
 * @example bindHttpContract({ describe, it }, { listen, openStore: () => memoryStore() });
 */
export function bindHttpContract(runner: TestRunner, setup: HttpContractSetup): void {
  bindCases(runner, SECTIONS, setup);
}
