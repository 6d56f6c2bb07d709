/**
 * @module
 * What the authors of stores, adapters and of tests need: contracts to run, a clock to move, a store that
 * fails on purpose.
 */

export {
  bindConsumerContract,
  type ConsumerCase,
  type ConsumerContext,
  type ConsumerContractSetup,
  type ConsumerSubject,
  type Consuming,
  type ContractConsumer,
  type ContractHandler,
  type ContractMessage,
  CRASHING_CONSUMER,
  type CrashPoint,
  consumerContract,
} from "./consumer-contract/index.js";
export type { Fault } from "./faults.js";
export {
  type FaultPlan,
  type FaultRule,
  type FaultyCall,
  type FaultyStore,
  faultyStore,
} from "./faulty-store.js";
export {
  type BoundRoute,
  bindHttpContract,
  type ContractApp,
  type ContractRoute,
  type ContractServer,
  exchange,
  type HandlerRequest,
  type HeaderLine,
  type HttpCase,
  type HttpContractContext,
  type HttpContractSetup,
  httpContract,
  type Parses,
  type RawExchange,
  type RawRequest,
  type RawResponse,
  type ReadHeader,
  type Reply,
  type RunningServer,
  type ServeOptions,
  startServer,
  type TransactionalStore,
} from "./http-contract/index.js";
export {
  bindJobContract,
  JOB_LEASE_MS,
  type JobBehaviour,
  type JobCase,
  type JobContext,
  type JobContractSetup,
  type JobInstance,
  type JobInstanceOptions,
  type JobLine,
  type JobSubject,
  jobContract,
  runJobCase,
} from "./job-contract/index.js";
export { type ManualClock, manualClock } from "./manual-clock.js";
export { type RecordedEvents, recordEvents } from "./record-events.js";
export {
  bindStoreContract,
  type ContractCaller,
  type ContractRows,
  runStoreCase,
  type StoreCase,
  type StoreContext,
  type StoreContractSetup,
  type StoreSubject,
  storeContract,
} from "./store-contract/index.js";
