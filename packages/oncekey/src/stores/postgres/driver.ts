/**
 * @module
 * What the store needs of a client of Postgres, whichever it is.
 *
 * Invariants: a driver opens connections of its own and never the application's, so that neither an exhausted pool of the
 * application stalls a claim nor its transaction swallows one; values travel as text (bytes as bytes), so that no parser that
 * the application has set changes what is read; a connection that was given up is destroyed with whatever still runs on it.
 */

/** Values are text, which the statements cast, or bytes. */
export type PostgresParam = string | Uint8Array | null;
/** In the order of the statement's list. */
export type PostgresRow = readonly (string | null)[];

/** A statement; where connections may keep it prepared, under its name. */
export interface PostgresStatement {
  readonly name: string | undefined;
  readonly text: string;
}

/** What has been set on a connection for as long as it lives. */
export interface SessionMemory {
  /** The bound of its transactions, once it has been prepared for them. */
  boundMs?: number;
}

/** One connection, taken out of a pool until `free` or `destroy`. */
export interface PostgresConnection<Tx> {
  query(statement: PostgresStatement, params: readonly PostgresParam[]): Promise<readonly PostgresRow[]>;
  /** Begins a transaction and, in the same round trip, runs `settings` (statements without parameters) in it. */
  begin(settings: readonly string[]): Promise<void>;
  /** Runs statements without parameters in one round trip; resolves to what the server says that the last one did. */
  script(statements: readonly string[]): Promise<string>;
  /** The same object as long as it is the same connection. */
  readonly session: SessionMemory;
  /** Resolves to what the server says that it did: `COMMIT`, or `ROLLBACK` for a transaction that had failed. */
  commit(): Promise<string>;
  rollback(): Promise<void>;
  /** Whether it was lost: what is sent now would not be in the transaction. */
  isLost(): boolean;
  /** The client's own, for the statements of the work. */
  readonly client: Tx;
  free(): void;
  destroy(): void;
}

export interface PostgresPool<Tx> {
  /** Waits for a free connection, or opens one, for as long as `connectMs`. */
  take(): Promise<PostgresConnection<Tx>>;
  close(): Promise<void>;
}

export interface PoolOptions {
  readonly applicationName: string;
  readonly max: number;
  readonly connectMs: number;
  /** Run-time settings that each connection starts with; none through a pooler, which knows no sessions. */
  readonly settings: Readonly<Record<string, string>>;
  /** Whether statements may be kept prepared under their names. */
  readonly prepares: boolean;
}

export interface ListenHandlers {
  /** It listens, for the first time or again: whatever was said before may have been missed. */
  listening(): void;
  heard(payload: string): void;
}

export interface Listening {
  close(): Promise<void>;
}

/** Runs a statement of the work in its transaction, which begins with the first one. */
export type InTransaction<Tx> = <T>(perform: (client: Tx) => Promise<T>) => Promise<T>;

/** A client of Postgres. Made by `fromPg`, `fromPostgresJs` or `fromPglite`. */
export interface PostgresDriver<Tx = unknown> {
  readonly name: string;
  /** Whether several connections are possible, and settings of their own. PGlite has one, the application's. */
  readonly hasSessions: boolean;
  /** Connects to nothing yet. */
  open(options: PoolOptions): PostgresPool<Tx>;
  /** Listens on a connection of its own, again after it was lost. Rejects if it cannot the first time. */
  listen(options: PoolOptions, channel: string, handlers: ListenHandlers): Promise<Listening>;
  /** What the work writes through. */
  handle(inTransaction: InTransaction<Tx>): Tx;
}
