/**
 * @module
 * The database as the store speaks to it: one round trip at a time, each bounded, on connections for records.
 *
 * Invariants: nothing is sent before it is known which server it is and that its tables fit; what was found wrong is looked
 * for again by the next call, so a database that was mended is used without a restart. A transaction that failed halfway is
 * rolled back before its connection serves anybody else.
 */
import { systemClock } from "../../core/clock.js";
import { type Connections, createConnections, type Session } from "./connections.js";
import { errnoOf, faultOf, type MysqlSource } from "./driver.js";
import { checkTables, migrate, type Tables, tooOld } from "./schema.js";
import { lookAtServer, type MysqlServer, recordsSession } from "./server.js";

export interface Database {
  readonly tables: Tables;
  /** Which server it is; its tables are as they have to be. */
  ready(): Promise<MysqlServer>;
  /** Sends statements in one round trip; whatever is still open afterwards is rolled back. */
  ask(sql: string, waitMs?: number): Promise<unknown>;
  /** Several round trips on one connection. */
  within<T>(work: (ask: (sql: string) => Promise<unknown>) => Promise<T>, waitMs?: number): Promise<T>;
  /** Drops a statement of another connection, if it still runs. */
  kill(threadId: number): void;
  migrate(): Promise<void>;
  close(): Promise<void>;
}

export interface DatabaseOptions {
  readonly source: MysqlSource;
  readonly tables: Tables;
  readonly most: number;
  readonly timeoutMs: number;
  /** Told once which server it is. */
  readonly found: (server: MysqlServer) => void;
}

export function openDatabase({ source, tables, most, timeoutMs, found }: DatabaseOptions): Database {
  let server: MysqlServer | undefined;
  let finding: Promise<MysqlServer> | undefined;
  let closing: Promise<void> | undefined;

  const connections: Connections = createConnections({
    source,
    most,
    async prepare(session) {
      const seen = server ?? (await lookAtServer(session, timeoutMs));
      if (server === undefined) found(seen);
      server = seen;
      await session.ask(recordsSession(server.flavor, { timeoutMs }), timeoutMs);
    },
  });

  async function find(): Promise<MysqlServer> {
    await connections.use(timeoutMs, (session) => checkTables(session, tables, timeoutMs));
    // Every connection has looked at it before it was lent.
    return server as MysqlServer;
  }

  function ready(): Promise<MysqlServer> {
    finding ??= find().catch((error: unknown) => {
      finding = undefined;
      throw error;
    });
    return finding;
  }

  async function within<T>(
    work: (ask: (sql: string) => Promise<unknown>) => Promise<T>,
    waitMs = timeoutMs,
  ): Promise<T> {
    await ready();
    const endsAtMs = systemClock.monotonicMs() + waitMs;
    const session = await connections.enter(waitMs);
    try {
      return await work((sql) => session.ask(sql, Math.max(1, endsAtMs - systemClock.monotonicMs())));
    } catch (error) {
      await rollBack(session, timeoutMs);
      if (faultOf(error) !== "tables") throw error;
      // The tables were there before, so somebody has changed them: the next call looks again.
      finding = undefined;
      throw errnoOf(error) === NO_SUCH_TABLE ? tooOld(tables, 0) : error;
    } finally {
      connections.leave(session);
    }
  }

  return {
    tables,
    ready,
    within,
    ask: (sql, waitMs) => within((ask) => ask(sql), waitMs),
    kill(threadId) {
      const kill = (session: Session) => session.ask(`KILL ${threadId}`, timeoutMs);
      // It may have ended by itself, which is as good.
      void connections.use(timeoutMs, kill).catch(() => undefined);
    },
    migrate: () => connections.use(timeoutMs, (session) => migrate(session, tables)),
    close() {
      closing ??= connections.close();
      return closing;
    },
  };
}

const NO_SUCH_TABLE = 1146;

async function rollBack(session: Session, waitMs: number): Promise<void> {
  if (session.broken) return;
  await session.ask("ROLLBACK", waitMs).catch(() => {
    session.broken = true;
  });
}
