/**
 * @module
 * A SQLite file of a test's own, stores on it, and requests to send them.
 */
import { createHash, randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "libsql";
import { fromLibsql, type SqliteStoreOptions, sqliteStore } from "oncekey/stores/sqlite";
import { onTestFinished } from "vitest";
import { fingerprintOf, fingerprintTag } from "../../src/core/fingerprint.js";
import type { ClaimToken, RecordKey, ScopeId, StoredOutcome } from "../../src/core/record.js";
import type { ClaimRequest, CompleteRequest, TransactionRequest } from "../../src/core/store.js";

const TAG = fingerprintTag("t1");

/** A file that is removed with the test. */
export function temporaryFile(): string {
  const folder = mkdtempSync(join(tmpdir(), "oncekey-sqlite-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, "test.db");
}

/** A store on `path`, closed with the test. */
export function openStore(path: string, options: SqliteStoreOptions = {}) {
  const store = sqliteStore(
    fromLibsql(() => new Database(path)),
    { sweepIntervalMs: 0, ...options },
  );
  onTestFinished(() => store.close());
  return store;
}

/** A connection that belongs to nobody but the test. */
export function openConnection(path: string): Database.Database {
  const connection = new Database(path);
  onTestFinished(() => void connection.close());
  return connection;
}

export function keyOf(name: string): RecordKey {
  return createHash("sha256").update(name).digest("base64url") as RecordKey;
}

/** A claim of `name` by a token of its own. */
export function claimOf(name: string, changes: Partial<ClaimRequest> = {}): ClaimRequest {
  return {
    key: keyOf(name),
    scopeId: "scope-1" as ScopeId,
    operation: "POST /payments",
    label: undefined,
    token: randomUUID() as string as ClaimToken,
    fingerprint: fingerprintOf(TAG, [name]),
    guarantee: "at-least-once",
    onLapse: "takeover",
    leaseMs: 30_000,
    retentionMs: 86_400_000,
    maxAttempts: undefined,
    ...changes,
  };
}

export function resultOf(text: string): StoredOutcome {
  return { head: `{"of":"${text}"}`, body: new TextEncoder().encode(text) };
}

export function completionOf(claim: ClaimRequest, text = "done"): CompleteRequest {
  return { ...claim, attempt: 1, outcome: resultOf(text) };
}

export function transactionOf(claim: ClaimRequest, maxTransactionMs = 1_000): TransactionRequest {
  return { ...claim, attempt: 1, maxTransactionMs };
}
