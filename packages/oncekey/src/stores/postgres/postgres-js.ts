/**
 * @module
 * The client postgres.js (`postgres` on npm).
 *
 * A function that opens is asked for, because an open `sql` cannot be opened a second time. Each connection of the store is an
 * instance with `max: 1`: so one can be given up with whatever runs on it, and a transaction stays on its connection. Such an
 * instance would connect again by itself and go on outside the transaction, so a connection that was lost takes no more.
 */

import { systemClock } from "../../core/clock.js";
import { configurationError, OncekeyError } from "../../core/errors.js";
import type {
  PoolOptions,
  PostgresConnection,
  PostgresDriver,
  PostgresPool,
  SessionMemory,
} from "./driver.js";
import { handleOf, type QueryOfPostgresJs } from "./postgres-js-handle.js";

/** What is used of an `sql` of postgres.js. */
export interface PostgresJsSql {
  readonly options: object;
  unsafe(...parts: never[]): unknown;
  begin(...parts: never[]): unknown;
  listen(...parts: never[]): unknown;
  end(...parts: never[]): unknown;
}

/** What exactly-once work writes through: the `sql` of a transaction, without cursors and streams. */
export type PostgresJsTransaction<Sql extends PostgresJsSql> = Sql extends {
  begin(options: string, work: (sql: infer Tx) => unknown): unknown;
}
  ? Tx
  : never;

/** What each connection of the store is opened with. To be put after your own options. */
export interface PostgresJsSettings {
  readonly max: 1;
  readonly connect_timeout: number;
  readonly idle_timeout: undefined;
  readonly max_lifetime: null;
  readonly prepare: boolean;
  readonly fetch_types: false;
  readonly connection: Readonly<Record<string, string>> & { readonly application_name: string };
  readonly onclose: () => void;
  readonly onnotice: () => void;
}

interface OpenSql {
  readonly options: { readonly max?: unknown };
  unsafe(
    text: string,
    params?: readonly unknown[],
    options?: { readonly prepare: boolean },
  ): QueryOfPostgresJs;
  listen(channel: string, heard: (payload: string) => void, listening: () => void): Promise<unknown>;
  end(options: { readonly timeout: number }): Promise<void>;
}

/**
 * The client postgres.js.
 *
 * @param open opens an instance with the settings that it is given after your own:
 * `(settings) => postgres(url, { ...options, ...settings })`.
 */
export function fromPostgresJs<Sql extends PostgresJsSql>(
  open: (settings: PostgresJsSettings) => Sql,
): PostgresDriver<PostgresJsTransaction<Sql>> {
  if (typeof open !== "function" || "unsafe" in open) {
    throw configurationError("fromPostgresJs", [
      "it takes a function that opens an sql, not an open one: (settings) => postgres(url, { ...options, ...settings })",
    ]);
  }
  const opened = (options: PoolOptions, onclose: () => void): OpenSql => {
    const sql = open(settingsOf(options, onclose)) as unknown as OpenSql;
    if (sql?.options?.max === 1) return sql;
    throw configurationError("fromPostgresJs", [
      "the function has to pass on the settings that it is given: (settings) => postgres(url, { ...options, ...settings })",
    ]);
  };
  return {
    name: "postgres.js",
    hasSessions: true,
    open: (options) => poolOf(options, (onclose) => opened(options, onclose)),
    async listen(options, channel, handlers) {
      const sql = opened(options, () => undefined);
      try {
        // It connects again by itself, and says so each time.
        await sql.listen(channel, handlers.heard, handlers.listening);
      } catch (error) {
        await sql.end({ timeout: 0 });
        throw error;
      }
      return { close: () => sql.end({ timeout: 0 }) };
    },
    handle: (inTransaction) => handleOf(inTransaction),
  };
}

function settingsOf(
  { applicationName, connectMs, settings, prepares }: PoolOptions,
  onclose: () => void,
): PostgresJsSettings {
  return {
    max: 1,
    connect_timeout: connectMs / 1_000,
    idle_timeout: undefined,
    max_lifetime: null,
    prepare: prepares,
    fetch_types: false,
    connection: { ...settings, application_name: applicationName },
    onclose,
    onnotice: () => undefined,
  };
}

interface Line {
  readonly sql: OpenSql;
  readonly session: SessionMemory;
  lost: boolean;
}

/** Those who wait for a connection; more could not be served in time anyway. */
const MAX_WAITING = 1_000;

function poolOf<Tx>(
  { max, connectMs, prepares }: PoolOptions,
  open: (onclose: () => void) => OpenSql,
): PostgresPool<Tx> {
  const lines = new Set<Line>();
  const idle: Line[] = [];
  const waiting = new Set<(line: Line) => void>();

  function openLine(): Line {
    const line: Line = { lost: false, session: {}, sql: open(() => drop(line)) };
    lines.add(line);
    return line;
  }

  function drop(line: Line): void {
    line.lost = true;
    lines.delete(line);
    void line.sql.end({ timeout: 0 });
  }

  function next(): Line | undefined {
    for (let line = idle.pop(); line !== undefined; line = idle.pop()) if (!line.lost) return line;
    return lines.size < max ? openLine() : undefined;
  }

  function serveNext(): void {
    const [first] = waiting;
    const line = first === undefined ? undefined : next();
    if (line !== undefined) first?.(line);
  }

  function wait(): Promise<Line> {
    if (waiting.size >= MAX_WAITING) return Promise.reject(noneFree(`more than ${MAX_WAITING} wait for one`));
    return new Promise((resolve, reject) => {
      const timer = systemClock.setTimer(() => {
        waiting.delete(served);
        reject(noneFree(`none became free within ${connectMs} ms`));
      }, connectMs);
      const served = (line: Line): void => {
        waiting.delete(served);
        timer.cancel();
        resolve(line);
      };
      waiting.add(served);
    });
  }

  return {
    async take() {
      const line = next() ?? (await wait());
      return connectionOf(line, prepares, (destroy) => {
        if (destroy || line.lost) drop(line);
        else idle.push(line);
        serveNext();
      });
    },
    async close() {
      await Promise.all([...lines].map(({ sql }) => sql.end({ timeout: 0 })));
    },
  };
}

interface Result {
  readonly command: string;
}

function connectionOf<Tx>(
  line: Line,
  prepares: boolean,
  giveBack: (destroy: boolean) => void,
): PostgresConnection<Tx> {
  const { sql } = line;
  let isOut = true;
  const end = (destroy: boolean): void => {
    if (isOut) giveBack(destroy);
    isOut = false;
  };
  async function script(statements: readonly string[]): Promise<string> {
    const results = (await sql.unsafe(statements.join("; "))) as Result | readonly Result[];
    // One result is a list as well, of rows.
    const last = "command" in results ? results : results.at(-1);
    return last?.command ?? "";
  }
  return {
    client: sql as Tx,
    async query({ name, text }, params) {
      const prepare = prepares && name !== undefined;
      const rows = (await sql.unsafe(text, params, { prepare }).raw()) as readonly (readonly Cell[])[];
      return rows.map((row) => row.map((cell) => cell?.toString("utf8") ?? null));
    },
    session: line.session,
    script,
    async begin(settings) {
      await script(["BEGIN", ...settings]);
    },
    commit: () => script(["COMMIT"]),
    async rollback() {
      await sql.unsafe("ROLLBACK");
    },
    isLost: () => line.lost,
    free: () => end(false),
    destroy: () => end(true),
  };
}

type Cell = { toString(encoding: "utf8"): string } | null;

function noneFree(why: string): OncekeyError<"STORE_UNAVAILABLE"> {
  const message = `All connections of the store are taken, and ${why}. Nothing was changed; try again.`;
  return new OncekeyError("STORE_UNAVAILABLE", message, { retryAfterMs: 1_000 });
}
