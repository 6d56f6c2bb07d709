/**
 * @module
 * A bounded set of connections of the store's own.
 *
 * Invariants: whoever waits for one waits for a bounded time; a statement that is not answered in time takes its
 * connection with it, so that a late answer meets nobody; a connection in an unknown state is never used again. What a
 * session has to be set to is left to `session.ts`.
 */
import { systemClock, type Timer } from "../../core/clock.js";
import { OncekeyError } from "../../core/errors.js";
import { faultOf, type MysqlConnection, type MysqlFault, type MysqlSource, timedOut } from "./driver.js";

export interface Session {
  readonly connection: MysqlConnection;
  /** Not to be used again. */
  broken: boolean;
  /** When it was last given back, on the monotonic clock. */
  idleSinceMs: number;
  /** Sends statements of the store, one or several, and waits at most `waitMs`: then the connection is dropped. */
  ask(sql: string, waitMs: number): Promise<unknown>;
}

export interface Connections {
  /** Lends a connection; `leave` has to be called once. */
  enter(waitMs: number): Promise<Session>;
  leave(session: Session): void;
  /** Lends one for the length of `work`. */
  use<T>(waitMs: number, work: (session: Session) => Promise<T>): Promise<T>;
  /** Says goodbye to the server; whoever still waits is refused. */
  close(): Promise<void>;
}

export interface ConnectionsOptions {
  readonly source: MysqlSource;
  readonly most: number;
  /** Sets a new session up. */
  readonly prepare: (session: Session) => Promise<void>;
}

interface Waiter {
  readonly give: (session: Session) => void;
  readonly fail: (error: unknown) => void;
}

/** More could not be answered in time anyway. */
const MAX_WAITING = 10_000;

export function createConnections({ source, most, prepare }: ConnectionsOptions): Connections {
  let idle: Session[] = [];
  const waiting: Waiter[] = [];
  let count = 0;
  let closed = false;

  async function open(): Promise<void> {
    count += 1;
    try {
      const session = sessionOn(await source.open(), drop);
      if (closed) throw closing();
      give(await setUp(session, prepare));
    } catch (error) {
      count -= 1;
      waiting.shift()?.fail(error);
      // Whoever came while all connections were on their way has asked for none.
      if (waiting.length > 0 && !closed) void open();
    }
  }

  function give(session: Session): void {
    session.idleSinceMs = systemClock.monotonicMs();
    const next = waiting.shift();
    if (next === undefined) idle.push(session);
    else next.give(session);
  }

  /** The server, or the network, has ended it while nobody used it; or it was dropped in use. */
  function drop(session: Session): void {
    if (session.broken) return;
    session.broken = true;
    if (idle.includes(session)) forget(session);
  }

  function forget(session: Session): void {
    idle = idle.filter((other) => other !== session);
    count -= 1;
    if (waiting.length > 0 && count < most && !closed) void open();
  }

  function enter(waitMs: number): Promise<Session> {
    if (closed) return Promise.reject(closing());
    const ready = idle.pop();
    if (ready !== undefined) return Promise.resolve(ready);
    if (waiting.length >= MAX_WAITING) return Promise.reject(timedOut(waitMs));
    return new Promise((resolve, reject) => {
      const end = (act: () => void): void => {
        timer.cancel();
        act();
      };
      const waiter: Waiter = {
        give: (session) => end(() => resolve(session)),
        fail: (error) => end(() => reject(error)),
      };
      const timer: Timer = systemClock.setTimer(() => {
        waiting.splice(waiting.indexOf(waiter), 1);
        reject(noneFree(waitMs));
      }, waitMs);
      waiting.push(waiter);
      if (count < most) void open();
    });
  }

  function leave(session: Session): void {
    if (session.broken || closed) {
      session.broken = true;
      session.connection.destroy();
      forget(session);
    } else give(session);
  }

  return {
    enter,
    leave,
    async use(waitMs, work) {
      const session = await enter(waitMs);
      try {
        return await work(session);
      } finally {
        leave(session);
      }
    },
    async close() {
      closed = true;
      for (const { fail } of waiting.splice(0)) fail(closing());
      await seen(() => idle.length === count);
      await source.close();
    },
  };
}

const LOOK_AGAIN_MS = 10;

/**
 * Resolves once all connections have come back: each is lent, or on its way, for a bounded time. A goodbye that stands behind a
 * statement without an answer would be waited for without end.
 */
async function seen(allBack: () => boolean): Promise<void> {
  while (!allBack()) {
    await new Promise<void>((resolve) => void systemClock.setTimer(resolve, LOOK_AGAIN_MS));
  }
}

/** One that cannot be set up is ended: nobody else knows of it. */
async function setUp(session: Session, prepare: ConnectionsOptions["prepare"]): Promise<Session> {
  try {
    await prepare(session);
    return session;
  } catch (error) {
    session.broken = true;
    session.connection.destroy();
    throw error;
  }
}

/** @param onEnd called when the connection has ended by itself. */
function sessionOn(connection: MysqlConnection, onEnd: (session: Session) => void): Session {
  const session: Session = {
    connection,
    broken: false,
    idleSinceMs: systemClock.monotonicMs(),
    ask: (sql, waitMs) => ask(session, sql, waitMs),
  };
  connection.on("end", () => onEnd(session));
  connection.on("error", () => onEnd(session));
  return session;
}

function ask(session: Session, sql: string, waitMs: number): Promise<unknown> {
  return new Promise((resolve, reject) => {
    let answered = false;
    const giveUp = (): void => {
      if (answered) return;
      session.broken = true;
      session.connection.destroy();
      reject(timedOut(waitMs));
    };
    // A process that stood still finds its timers due before it has read what arrived meanwhile.
    const timer = systemClock.setTimer(() => void setImmediate(giveUp), waitMs);
    session.connection.query(
      { sql, rowsAsArray: false, nestTables: false, namedPlaceholders: false, typeCast: true },
      (error, result) => {
        answered = true;
        timer.cancel();
        if (!error) {
          resolve(result);
          return;
        }
        const fault = faultOf(error);
        // A replica is left, so that the next connection finds the primary.
        if (fault === undefined || ENDS_CONNECTION.has(fault)) session.broken = true;
        reject(error);
      },
    );
  });
}

const ENDS_CONNECTION: ReadonlySet<MysqlFault> = new Set(["lost", "too-large", "read-only"]);

function noneFree(waitMs: number): OncekeyError<"STORE_UNAVAILABLE"> {
  const message = `No connection to the database was free within ${waitMs} ms. Nothing was done; try again.`;
  return new OncekeyError("STORE_UNAVAILABLE", message, { retryAfterMs: 1_000 });
}

export function closing(): OncekeyError<"STORE_UNAVAILABLE"> {
  return new OncekeyError("STORE_UNAVAILABLE", "The store has been closed.");
}
