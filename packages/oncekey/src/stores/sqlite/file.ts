/**
 * @module
 * The open file: whether it is ready, whether the store is closed, and reading from it.
 *
 * Invariants: nothing is asked of a file that has not been set up; a set-up that failed is tried again by the
 * next call, so a store recovers by itself once the cause is gone; after `close` every call rejects.
 */
import { OncekeyError } from "../../core/errors.js";
import type { Settings } from "./options.js";
import { unavailable, whileBusy } from "./pace.js";
import type { Tables } from "./schema.js";
import { type Connections, prepareFile } from "./setup.js";

export interface DatabaseFile {
  /** Sets the file up, once. @throws OncekeyError `STORE_UNAVAILABLE`, also after `close`. */
  ready(): Promise<void>;
  isReady(): boolean;
  /** Reads, again while the file is busy. */
  read<T>(attempt: () => T): Promise<T>;
  /** From now on every call rejects; resolves when nothing is under way any more. */
  stop(): Promise<void>;
  /** Closes both connections. */
  close(): void;
}

export function openFile(connections: Connections, tables: Tables, settings: Settings): DatabaseFile {
  const { busyWaitMs, synchronous, clock } = settings;
  let state: "new" | "ready" | "closed" = "new";
  let preparing: Promise<void> | undefined;

  async function prepare(): Promise<void> {
    try {
      const open = (): boolean => state !== "closed";
      await whileBusy(
        () => prepareFile(connections, tables, synchronous, () => clock.now()),
        busyWaitMs,
        open,
      );
      if (state === "new") state = "ready";
    } catch (error) {
      throw unavailable(error);
    } finally {
      preparing = undefined;
    }
  }

  async function ready(): Promise<void> {
    if (state === "new") {
      preparing ??= prepare();
      await preparing;
    }
    if (state === "closed") throw closed();
  }

  return {
    ready,
    isReady: () => state === "ready",
    async read(attempt) {
      if (state !== "ready") await ready();
      try {
        return await whileBusy(attempt, busyWaitMs);
      } catch (error) {
        throw unavailable(error);
      }
    },
    async stop() {
      state = "closed";
      await preparing?.catch(() => undefined);
    },
    close() {
      leaveNoLog(connections);
      connections.work.close();
      connections.records.close();
    },
  };
}

/** Moves what stands in the write-ahead log into the file, so that a copy of the file alone is whole. */
function leaveNoLog({ records }: Connections): void {
  try {
    records.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  } catch {
    // Another process is at work and will do it; nothing is lost, the log belongs to the database.
  }
}

function closed(): OncekeyError<"STORE_UNAVAILABLE"> {
  return new OncekeyError("STORE_UNAVAILABLE", "The store has been closed; nothing was changed.");
}
