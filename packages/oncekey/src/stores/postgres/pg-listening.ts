/**
 * @module
 * Listening with `pg`, on one connection.
 *
 * Invariant: a connection that was lost is replaced, ever more patiently, until `close`; each is given back once.
 */
import { systemClock } from "../../core/clock.js";
import type { ListenHandlers, Listening, PostgresRow } from "./driver.js";

/** What is used of a connection of `pg`. */
export interface PgClient {
  query(query: object | string): Promise<{ readonly rows: PostgresRow[]; readonly command: string }>;
  release(destroy?: boolean): void;
  on(event: string, listener: (value: { readonly payload?: string }) => void): unknown;
}

/** What is used of a pool of the store's own. */
export interface OpenPool {
  connect(): Promise<PgClient>;
  on(event: string, listener: (client: PgClient) => void): unknown;
  end(): Promise<void>;
}

const RECONNECT_MS = [100, 300, 1_000, 3_000, 10_000] as const;

export async function listenOn(
  pool: OpenPool,
  channel: string,
  handlers: ListenHandlers,
): Promise<Listening> {
  let closed = false;
  let isComing = false;
  /** Gives the present connection up; may be called more than once. */
  let leave = (): void => undefined;

  async function connect(): Promise<void> {
    const client = await pool.connect();
    let isOut = true;
    leave = () => {
      if (isOut) client.release(true);
      isOut = false;
    };
    client.on("notification", ({ payload }) => handlers.heard(payload ?? ""));
    client.on("end", () => {
      if (isOut && !closed) again(0);
      leave();
    });
    try {
      await client.query(`LISTEN "${channel}"`);
    } catch (error) {
      leave();
      throw error;
    }
    if (closed) leave();
    else handlers.listening();
  }

  /** At most one at a time: a connection that fails may be told of twice. */
  function again(tries: number): void {
    if (isComing) return;
    isComing = true;
    const delayMs = RECONNECT_MS[Math.min(tries, RECONNECT_MS.length - 1)] ?? 0;
    systemClock.setTimer(() => void reconnect(tries), delayMs, false);
  }

  async function reconnect(tries: number): Promise<void> {
    isComing = false;
    if (!closed) await connect().catch(() => again(tries + 1));
  }

  try {
    await connect();
  } catch (error) {
    closed = true;
    await pool.end();
    throw error;
  }
  return {
    async close() {
      closed = true;
      leave();
      await pool.end();
    },
  };
}
