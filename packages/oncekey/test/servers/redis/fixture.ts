/**
 * @module
 * Stores on Redis through each client, requests to send them, and a look at the server beside them.
 */
import { createHash, randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import type { ClaimRequest, ClaimToken, CompleteRequest, RecordKey, ScopeId, StoredOutcome } from "oncekey";
import {
  fromIoredis,
  fromNodeRedis,
  type RedisDriver,
  type RedisStore,
  type RedisStoreOptions,
  redisStore,
} from "oncekey/stores/redis";
import { createClient } from "redis";
import { onTestFinished } from "vitest";
import { fingerprintOf, fingerprintTag } from "../../../src/core/fingerprint.js";
import { uniquePrefix } from "../support/servers.js";

/** The application's client is never connected here: the store makes connections of its own from its settings. */
const DRIVERS = {
  ioredis: (url: string) => fromIoredis(new Redis(url, { lazyConnect: true })),
  "node-redis": (url: string) => fromNodeRedis(createClient({ url })),
} as const satisfies Record<string, (url: string) => RedisDriver>;

export type Family = keyof typeof DRIVERS;
export const FAMILIES = Object.keys(DRIVERS) as readonly Family[];

export function driverOf(family: Family, url: string): RedisDriver {
  return DRIVERS[family](url);
}

/** A store whose keys begin with a name of their own; closed with the test. */
export function openStore(family: Family, url: string, options: RedisStoreOptions = {}): RedisStore {
  const store = redisStore(driverOf(family, url), { prefix: `${uniquePrefix()}:`, ...options });
  onTestFinished(() => store.close());
  return store;
}

/** A connection that belongs to nobody but the test. */
export function outsider(url: string): Redis {
  const redis = new Redis(url, { retryStrategy: (times) => Math.min(times * 20, 200) });
  redis.on("error", () => undefined);
  onTestFinished(() => redis.disconnect());
  return redis;
}

function keyOf(name: string): RecordKey {
  return createHash("sha256").update(name).digest("base64url") as RecordKey;
}

/** A claim of a key by a token of its own. */
export function claimOf(name: string = randomUUID(), changes: Partial<ClaimRequest> = {}): ClaimRequest {
  return {
    key: keyOf(name),
    scopeId: "scope-1" as ScopeId,
    operation: "POST /payments",
    label: undefined,
    token: randomUUID() as string as ClaimToken,
    fingerprint: fingerprintOf(fingerprintTag("t1"), [name]),
    guarantee: "at-least-once",
    onLapse: "takeover",
    leaseMs: 30_000,
    retentionMs: 86_400_000,
    maxAttempts: undefined,
    ...changes,
  };
}

export function repeatOf(claim: ClaimRequest): ClaimRequest {
  return { ...claim, token: randomUUID() as string as ClaimToken };
}

export function completionOf(
  claim: ClaimRequest,
  outcome: StoredOutcome = { head: "200", body: Uint8Array.of(1, 2, 3) },
): CompleteRequest {
  return { ...claim, attempt: 1, outcome };
}

/** Waits until `condition` holds; fails after `patienceMs`. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  what: string,
  patienceMs = 10_000,
): Promise<void> {
  const endsAtMs = performance.now() + patienceMs;
  while (!(await condition())) {
    if (performance.now() > endsAtMs) throw new Error(`${what}: not within ${patienceMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
