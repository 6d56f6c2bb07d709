/**
 * @module
 * What a case gets: real servers of the framework under test, a raw client for them, and a look at their store.
 */
import type { IdempotencyEvent } from "../../core/events.js";
import { createIdempotency, type Idempotency } from "../../core/idempotency.js";
import type { Limits } from "../../core/limits.js";
import type { Policy } from "../../core/policy.js";
import type { Store } from "../../core/store.js";
import type { StoreMethod } from "../../core/store-checks.js";
import { type Interception, interceptedStore } from "../intercepted-store.js";
import type { Waivers } from "../test-runner.js";
import { exchange, type RawExchange } from "./raw-client.js";
import type { HeaderLine, RawRequest, RawResponse } from "./raw-message.js";
import { type BoundRoute, boundRoute, type ContractRoute } from "./route.js";

export interface RunningServer {
  readonly port: number;
  /** Stops it, open connections included. */
  close(): Promise<void>;
}

/** What a binding serves. */
export interface ContractApp<Tx = unknown> {
  readonly idempotency: Idempotency<Tx>;
  readonly routes: readonly BoundRoute[];
  /** Called for each request; its lines are set by a layer around the protection, as CORS or a rate limit is. */
  readonly outerHeaders: () => readonly HeaderLine[];
}

/** A store with transactions, and a table that work can write to through them. */
export interface TransactionalStore<Tx> {
  readonly store: Store<Tx>;
  /** Inserts a row through the transaction. */
  insert(transaction: Tx, row: string): Promise<void>;
  /** The rows that are committed. */
  rows(): Promise<readonly string[]>;
}

/** How one framework is put under the contract. */
export interface HttpContractSetup {
  /** Starts a real server of the framework on 127.0.0.1, on a free port. */
  listen(app: ContractApp): Promise<RunningServer>;
  /** A new and empty store; closed at the end of the case. */
  openStore(): Store | Promise<Store>;
  /** Without it the cases of exactly-once are left out. */
  openTransactionalStore?(): TransactionalStore<unknown> | Promise<TransactionalStore<unknown>>;
  /** Cases that cannot pass, by name, each with its reason. One that would pass all the same is a failure. */
  readonly waivers?: Waivers | undefined;
}

type Interceptions = { readonly [Method in StoreMethod]?: Interception | undefined };

interface NotedCall {
  readonly method: StoreMethod;
  readonly request: unknown;
}

export interface ServeOptions {
  /** The instance's own layer of policy. */
  readonly policy?: Policy | undefined;
  readonly limits?: Partial<Limits> | undefined;
  readonly intercept?: Interceptions | undefined;
  readonly outerHeaders?: (() => readonly HeaderLine[]) | undefined;
  /** Serve from this store instead of a new one. */
  readonly store?: Store | undefined;
}

export interface ContractServer {
  readonly port: number;
  /** Sends and waits for the whole answer. Rejects if there is none. */
  send(request: RawRequest | Uint8Array): Promise<RawResponse>;
  /** Sends; the caller looks at the parts of the answer as they come. */
  open(request: RawRequest | Uint8Array): RawExchange;
  /** The instance that protects the routes. */
  readonly idempotency: Idempotency;
  /** What the store has been asked, in order. */
  calls(method?: StoreMethod): readonly NotedCall[];
  readonly events: readonly IdempotencyEvent[];
}

export interface HttpContractContext {
  /** A store for several servers. */
  store(): Promise<Store>;
  serve(routes: ContractRoute | readonly ContractRoute[], options?: ServeOptions): Promise<ContractServer>;
  /** @throws Error if the setup has none; only cases that need transactions ask. */
  transactional(): Promise<TransactionalStore<unknown>>;
}

/** Runs one case with a context of its own and cleans up after it, whatever its end. */
export async function withContext(
  setup: HttpContractSetup,
  run: (context: HttpContractContext) => Promise<void>,
): Promise<void> {
  const cleanups: (() => Promise<unknown>)[] = [];
  const context: HttpContractContext = {
    async store() {
      const store = await setup.openStore();
      cleanups.push(() => store.close());
      return store;
    },
    serve: (routes, options = {}) => serve(context, setup, [routes].flat(), options, cleanups),
    async transactional() {
      if (setup.openTransactionalStore === undefined) throw new Error("The setup has no transactional store");
      const transactional = await setup.openTransactionalStore();
      cleanups.push(() => transactional.store.close());
      return transactional;
    },
  };
  try {
    await run(context);
  } finally {
    for (const cleanup of cleanups.toReversed()) await cleanup();
  }
}

const asUsual: Interception = (_, next) => next();

async function serve(
  context: HttpContractContext,
  setup: HttpContractSetup,
  routes: readonly ContractRoute[],
  options: ServeOptions,
  cleanups: (() => Promise<unknown>)[],
): Promise<ContractServer> {
  const noted: NotedCall[] = [];
  const events: IdempotencyEvent[] = [];
  const store = options.store ?? (await context.store());
  const idempotency = createIdempotency({
    ...options.policy,
    store: interceptedStore(store, (method, request, next) => {
      noted.push({ method, request });
      return (options.intercept?.[method] ?? asUsual)(request, next);
    }),
    limits: options.limits,
    onEvent: (event) => events.push(event),
  });
  cleanups.push(() => idempotency.close({ graceMs: 0 }));
  const outerHeaders = options.outerHeaders ?? (() => []);
  const server = await setup.listen({ idempotency, routes: routes.map(boundRoute), outerHeaders });
  cleanups.push(() => server.close());
  const open = (request: RawRequest | Uint8Array): RawExchange => exchange(server.port, request);
  return {
    port: server.port,
    idempotency,
    open,
    send: (request) => open(request).response,
    calls: (method) => noted.filter((call) => method === undefined || call.method === method),
    events,
  };
}
