/**
 * @module
 * A bounded set of connections of the store's own.
 *
 * Invariants: whoever waits for one waits for a bounded time; a statement that is not answered in time takes its
 * connection with it, so that a late answer meets nobody; a connection in an unknown state is never used again. What a
 * session has to be set to is left to `server.ts`.
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
  /** Lends a connection, to be given back with `leave`; a second time changes nothing. */
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
  const lent = new Set<Session>();
  const waiting: Waiter[] = [];
  let count = 0;
  let closed = false;
  const goodbye = createGoodbye(() => count === idle.length);

  async function open(): Promise<void> {
    count += 1;
    try {
      const session = sessionOn(await source.open(), drop);
      if (closed) throw closing();
      give(await setUp(session, prepare));
    } catch (error) {
      count -= 1;
      goodbye.look();
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
    goodbye.look();
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
    goodbye.look();
    if (waiting.length > 0 && count < most && !closed) void open();
  }

  async function enter(waitMs: number): Promise<Session> {
    const session = await taken(waitMs);
    lent.add(session);
    return session;
  }

  function taken(waitMs: number): Promise<Session> {
    if (closed) return Promise.reject(closing());
    const ready = idle.pop();
    if (ready !== undefined) return Promise.resolve(ready);
    if (waiting.length >= MAX_WAITING) return Promise.reject(timedOut(waitMs));
    if (count < most) void open();
    return wait(waiting, waitMs);
  }

  function leave(session: Session): void {
    if (!lent.delete(session)) return;
    if (session.broken || closed) {
      session.broken = true;
      session.connection.destroy();
      forget(session);
    } else give(session);
  }

  return {
    enter,
    leave,
    use: (waitMs, work) => enter(waitMs).then((session) => work(session).finally(() => leave(session))),
    async close() {
      closed = true;
      for (const { fail } of waiting.splice(0)) fail(closing());
      await goodbye.untilAllBack();
      await source.close();
    },
  };
}

/** Joins the queue, and leaves it after `waitMs`. */
function wait(waiting: Waiter[], waitMs: number): Promise<Session> {
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
  });
}

/** Longer than any connection is lent for once the store closes. */
const LONGEST_GOODBYE_MS = 10_000;

/**
 * Waits until all connections have come back. A goodbye that stands behind a statement without an answer would be waited for
 * without end, and so would a connection that nobody gives back.
 */
function createGoodbye(allBack: () => boolean) {
  let found: () => void = () => undefined;
  return {
    look(): void {
      if (allBack()) found();
    },
    untilAllBack: () =>
      new Promise<void>((resolve) => {
        const timer = systemClock.setTimer(resolve, LONGEST_GOODBYE_MS);
        found = () => {
          timer.cancel();
          resolve();
        };
        if (allBack()) found();
      }),
  };
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
