/**
 * @module
 * The `sql` through which work writes with postgres.js, before its transaction has begun.
 *
 * A query of postgres.js belongs to a connection from the moment that it is written down, and there is none yet. So what is
 * written down here is kept, fragments inside fragments included, and written down again on the connection when somebody
 * awaits it. Invariant: each query runs at most once, in the transaction or not at all.
 */
import { configurationError } from "../../core/errors.js";
import type { InTransaction } from "./driver.js";
import { checkedSql } from "./sql-text.js";

/** What is used of a query. */
export interface QueryOfPostgresJs extends PromiseLike<unknown> {
  raw(): QueryOfPostgresJs;
}

type Sql = ((...parts: readonly unknown[]) => unknown) &
  Readonly<Record<string, (...parts: unknown[]) => unknown>>;
type WriteDown = (sql: Sql) => unknown;

/** Those who have a fragment of ours inside of theirs. */
const written = new WeakMap<object, WriteDown>();

/** Methods of a query that say how its result shall look. */
const SHAPES = ["raw", "values", "simple", "describe", "forEach"] as const;
/** Of `sql`, what makes a value for a query and asks nothing of a server. */
const VALUES = ["json", "array", "typed"] as const;

export function handleOf<Tx>(inTransaction: InTransaction<Tx>): Tx {
  const run = (text: string, writeDown: WriteDown): object => lazyQuery(inTransaction, text, writeDown);
  let savepoints = 0;

  const sql = (first: unknown, ...others: readonly unknown[]): unknown => {
    if (isTemplate(first)) {
      return run(first.join(" ? "), (real) => real(first, ...others.map((part) => onConnection(part, real))));
    }
    return keep((real) => real(first, ...others));
  };
  const unsafe = (text: string, ...others: readonly unknown[]): object =>
    run(text, (real) => real.unsafe?.(text, ...others));

  async function savepoint(...parts: readonly unknown[]): Promise<unknown> {
    const work = parts.at(-1) as (sql: Tx) => unknown;
    const name = `oncekey_${++savepoints}`;
    await unsafe(`SAVEPOINT ${name}`);
    try {
      const result = await work(handle);
      const settled = Array.isArray(result) ? await Promise.all(result) : result;
      await unsafe(`RELEASE SAVEPOINT ${name}`);
      return settled;
    } catch (error) {
      await unsafe(`ROLLBACK TO SAVEPOINT ${name}`);
      throw error;
    }
  }

  const values = VALUES.map((name) => [
    name,
    (...parts: unknown[]) => keep((real) => real[name]?.(...parts)),
  ]);
  const handle = Object.assign(sql, { unsafe, savepoint, ...Object.fromEntries(values) }) as Tx;
  return handle;
}

function isTemplate(value: unknown): value is TemplateStringsArray {
  return Array.isArray(value) && Array.isArray((value as { readonly raw?: unknown }).raw);
}

/** A value that only the connection's own `sql` can make. */
function keep(writeDown: WriteDown): object {
  const kept = {};
  written.set(kept, writeDown);
  return kept;
}

/** The same on the connection: fragments, helpers, and lists of them. */
function onConnection(part: unknown, sql: Sql): unknown {
  if (
    Array.isArray(part) &&
    part.some((one) => typeof one === "object" && one !== null && written.has(one))
  ) {
    return part.map((one) => onConnection(one, sql));
  }
  const writeDown = typeof part === "object" && part !== null ? written.get(part) : undefined;
  return writeDown === undefined ? part : writeDown(sql);
}

function lazyQuery<Tx>(inTransaction: InTransaction<Tx>, text: string, writeDown: WriteDown): object {
  const shapes: ((query: Readonly<Record<string, (...parts: unknown[]) => unknown>>) => unknown)[] = [];
  let running: Promise<unknown> | undefined;
  const start = (): Promise<unknown> => {
    running ??= runNow();
    return running;
  };
  async function runNow(): Promise<unknown> {
    checkedSql(text);
    return inTransaction(async (client) => {
      let query = writeDown(client as Sql) as Readonly<Record<string, (...parts: unknown[]) => unknown>>;
      for (const shape of shapes) query = shape(query) as typeof query;
      return await query;
    });
  }
  const query: Record<string, unknown> = {
    // biome-ignore lint/suspicious/noThenProperty: a query is awaited.
    then: (...handlers: Parameters<Promise<unknown>["then"]>) => start().then(...handlers),
    catch: (handler: (error: unknown) => unknown) => start().catch(handler),
    finally: (handler: () => void) => start().finally(handler),
    execute() {
      start().catch(() => undefined);
      return query;
    },
    cursor: () => refuse("cursor"),
    readable: () => refuse("readable"),
    writable: () => refuse("writable"),
  };
  for (const name of SHAPES) {
    query[name] = (...parts: unknown[]) => {
      shapes.push((real) => real[name]?.(...parts));
      return query;
    };
  }
  written.set(query, writeDown);
  return query;
}

function refuse(what: string): never {
  throw configurationError("The statement", [`${what} is not possible here: read the rows as they are`]);
}
