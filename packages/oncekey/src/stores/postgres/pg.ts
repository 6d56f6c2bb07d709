/**
 * @module
 * The client `pg`.
 *
 * Given the application's pool, another one of the same class is opened with the same configuration, so that the store waits
 * for nobody's connection and nobody for the store's. Known by its shape only, never imported.
 */
import { configurationError } from "../../core/errors.js";
import type {
  InTransaction,
  PoolOptions,
  PostgresConnection,
  PostgresDriver,
  PostgresPool,
  SessionMemory,
} from "./driver.js";
import { listenOn, type OpenPool, type PgClient } from "./pg-listening.js";
import { checkedSql } from "./sql-text.js";

/** What is used of a `Pool` of `pg`. */
export interface PgPool {
  readonly options: object;
  query(text: string, values?: unknown[]): Promise<unknown>;
  connect(): Promise<unknown>;
  on(event: "error", listener: (error: Error) => void): unknown;
  end(): Promise<void>;
}

/** What exactly-once work writes through: `query` of the pool, in all its forms but cursors and streams. */
export type PgTransaction<Pool extends PgPool = PgPool> = Pick<Pool, "query">;

/** What each new pool of the store is opened with, for whoever opens it in a function of its own. */
export interface PgPoolSettings {
  readonly max: number;
  readonly application_name: string;
  readonly connectionTimeoutMillis: number;
  readonly options: string;
}

/** What the store has set on a connection. */
const SESSIONS = new WeakMap<object, SessionMemory>();

function sessionOf(client: object): SessionMemory {
  const known = SESSIONS.get(client) ?? {};
  SESSIONS.set(client, known);
  return known;
}

/** Connections that have ended, whoever ended them. */
const LOST = new WeakSet<object>();

/**
 * The client `pg`.
 *
 * @param pool the application's pool, whose configuration is taken over, or a function that opens a pool with the settings that
 * it is given: `(settings) => new Pool({ ...config, ...settings })`.
 */
export function fromPg<Pool extends PgPool>(
  pool: Pool | ((settings: PgPoolSettings) => Pool),
): PostgresDriver<PgTransaction<Pool>> {
  const openPool = openerOf(pool);
  type Tx = PgTransaction<Pool>;
  const open = (options: PoolOptions): OpenPool => {
    const own = openPool(options);
    // A connection that dies while nobody uses it is replaced by the pool; without a listener it would end the process.
    own.on("error", () => undefined);
    own.on("connect", (client) => {
      for (const event of ["error", "end"]) client.on(event, () => void LOST.add(client));
    });
    return own;
  };
  return {
    name: "pg",
    hasSessions: true,
    open(options) {
      const own = open(options);
      return poolOf<Tx>(own, options);
    },
    listen: (options, channel, handlers) => listenOn(open(options), channel, handlers),
    handle: handleOf,
  };
}

function openerOf(pool: PgPool | ((settings: PgPoolSettings) => PgPool)): (options: PoolOptions) => OpenPool {
  if (typeof pool === "function") {
    return (options) => checkedPool(pool(settingsOf(options, ""))) as unknown as OpenPool;
  }
  const configuration = checkedPool(pool).options;
  const SamePool = pool.constructor as new (config: object) => OpenPool;
  // Secrets are not enumerable there, so that they are not logged.
  const { password, connectionString, options } = configuration as Readonly<Record<string, unknown>>;
  return (wanted) => {
    const names = Object.keys(wanted.settings);
    const [address, inAddress] = withoutSettings(connectionString, names);
    return new SamePool({
      ...configuration,
      // As members of their own they would be sent beside `options`, and win.
      ...Object.fromEntries(names.map((name) => [name, undefined])),
      ...(password !== undefined && { password }),
      ...(address !== undefined && { connectionString: address }),
      min: 0,
      ...settingsOf(wanted, [inAddress, options].filter((some) => typeof some === "string").join(" ")),
    });
  };
}

function checkedPool(pool: unknown): PgPool {
  const { connect, end, options } = (pool ?? {}) as Partial<PgPool>;
  if (typeof connect === "function" && typeof end === "function" && typeof options === "object") {
    return pool as PgPool;
  }
  throw configurationError("fromPg", [
    "it takes a Pool of pg, or a function that opens one: (settings) => new Pool({ ...config, ...settings })",
  ]);
}

function settingsOf(
  { max, applicationName, connectMs, settings }: PoolOptions,
  before: string,
): PgPoolSettings {
  const flags = Object.entries(settings).map(([name, value]) => `-c ${name}=${value.replaceAll(" ", "\\ ")}`);
  return {
    max,
    application_name: applicationName,
    connectionTimeoutMillis: connectMs,
    options: [before, ...flags].join(" ").trim(),
  };
}

/** What stands in an address wins over the configuration beside it, so what is ours to say is taken out of it. */
function withoutSettings(
  address: unknown,
  ours: readonly string[],
): readonly [address: string | undefined, options: string] {
  if (typeof address !== "string" || !URL.canParse(address)) return [undefined, ""];
  const url = new URL(address);
  const options = url.searchParams.get("options") ?? "";
  for (const name of ["options", "application_name", "max", "min", ...ours]) url.searchParams.delete(name);
  return [url.toString(), options];
}

function poolOf<Tx>(pool: OpenPool, { prepares }: PoolOptions): PostgresPool<Tx> {
  return {
    async take() {
      return connectionOf(await pool.connect(), prepares);
    },
    close: () => pool.end(),
  };
}

/** Whatever parsers the application has set: values stay as the server sent them. */
const AS_SENT = { getTypeParser: () => (value: unknown) => value };

interface Result {
  readonly command: string;
}

function connectionOf<Tx>(client: PgClient, prepares: boolean): PostgresConnection<Tx> {
  let isOut = true;
  const giveBack = (destroy: boolean): void => {
    if (isOut) client.release(destroy);
    isOut = false;
  };
  async function script(statements: readonly string[]): Promise<string> {
    const results: Result | readonly Result[] = await client.query(statements.join("; "));
    return [results].flat().at(-1)?.command ?? "";
  }
  return {
    client: client as Tx,
    async query({ name, text }, values) {
      const query = {
        text,
        values,
        rowMode: "array",
        types: AS_SENT,
        ...(prepares && name !== undefined && { name }),
      };
      return (await client.query(query)).rows;
    },
    session: sessionOf(client),
    script,
    async begin(settings) {
      await script(["BEGIN", ...settings]);
    },
    commit: () => script(["COMMIT"]),
    async rollback() {
      await client.query("ROLLBACK");
    },
    isLost: () => LOST.has(client),
    free: () => giveBack(LOST.has(client)),
    destroy: () => giveBack(true),
  };
}

function handleOf<Tx>(inTransaction: InTransaction<Tx>): Tx {
  async function run(parts: readonly unknown[]): Promise<unknown> {
    checkedQuery(parts[0]);
    return inTransaction((client) =>
      (client as { query(...parts: unknown[]): Promise<unknown> }).query(...parts),
    );
  }
  return {
    query(...parts: unknown[]) {
      const last = parts.at(-1);
      if (typeof last !== "function") return run(parts);
      // The older form, which some query builders still use.
      run(parts.slice(0, -1)).then(
        (result) => last(undefined, result),
        (error) => last(error),
      );
      return undefined;
    },
  } as Tx;
}

function checkedQuery(query: unknown): void {
  const text = typeof query === "string" ? query : (query as { readonly text?: unknown } | null)?.text;
  if (typeof text === "string" && typeof (query as { readonly submit?: unknown }).submit !== "function") {
    checkedSql(text);
    return;
  }
  throw configurationError("The statement", [
    "it is a text, or { text, values }; cursors and streams are not",
  ]);
}
