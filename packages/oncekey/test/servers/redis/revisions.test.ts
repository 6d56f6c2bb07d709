import { describe, expect, it, onTestFinished } from "vitest";
import type { ClaimRequest } from "../../../src/core/store.js";
import { claimRecord } from "../../../src/core/transitions.js";
import { createRecords } from "../../../src/stores/redis/records.js";
import { createWire } from "../../../src/stores/redis/wire.js";
import { redisUrl, uniquePrefix } from "../support/servers.js";
import {
  claimOf,
  completionOf,
  driverOf,
  FAMILIES,
  openStore,
  outsider,
  repeatOf,
  until,
} from "./fixture.js";

const url = await redisUrl();
const LEASE_MS = 60;

describe.each(FAMILIES)("what was read is what is written over, with %s", (family) => {
  /** A store, and beside it the two halves of its takeover, so that something can come between them. */
  async function setUp() {
    const prefix = `${uniquePrefix()}:`;
    const store = openStore(family, url, { prefix });
    await store.ready();
    let connected = (): void => undefined;
    const firstConnection = new Promise<void>((resolve) => {
      connected = resolve;
    });
    const nothing = (): void => undefined;
    const events = {
      connected: () => connected(),
      changed: nothing,
      lost: nothing,
      published: nothing,
      listening: nothing,
    };
    const connection = driverOf(family, url).open(events, { answerMs: 5_000 });
    onTestFinished(() => connection.close());
    const wire = createWire({ connection, firstConnection, waitMs: 5_000, durability: {} });
    const records = createRecords({ wire, prefix, cluster: false, answerTimeoutMs: 5_000 });
    const claim = claimOf(undefined, { leaseMs: LEASE_MS });
    await store.claim(claim);
    await new Promise((resolve) => setTimeout(resolve, 2 * LEASE_MS));
    const reading = await records.read(claim.key);
    const takeover = (by: ClaimRequest) => {
      const { outcome, record } = claimRecord(reading.record, by, reading.nowMs);
      expect(outcome).toMatchObject({ kind: "claimed", takeover: true });
      return records.write(claim.key, reading.revision, record, reading.nowMs);
    };
    return { store, claim, takeover, name: prefix + claim.key };
  }

  it("a lapsed claim that nobody touched is taken over", async () => {
    const { store, claim, takeover } = await setUp();
    const by = repeatOf({ ...claim, leaseMs: 30_000 });
    expect(await takeover(by)).toBe(true);
    expect(await store.claim(repeatOf(claim))).toMatchObject({ kind: "in-flight", holder: by.token });
  });

  it("one that its holder renews in between is not, also if the renewal leaves the value as it was", async () => {
    const { store, claim, takeover, name } = await setUp();
    await store.extend({ ...claim, leaseMs: 30_000 });
    expect(await takeover(repeatOf(claim))).toBe(false);
    const other = await setUp();
    // What a renewal is that changes the expiry and nothing else.
    const redis = outsider(url);
    const before = await redis.get(other.name);
    await redis.pexpire(other.name, 30_000 + other.claim.retentionMs);
    expect(await redis.get(other.name)).toBe(before);
    expect(await other.takeover(repeatOf(other.claim))).toBe(false);
    expect(await store.claim(repeatOf(claim))).toMatchObject({ kind: "in-flight", holder: claim.token });
    expect(await redis.exists(name)).toBe(1);
  });

  it("one that ends in between is not", async () => {
    const completed = await setUp();
    await completed.store.complete(completionOf(completed.claim));
    expect(await completed.takeover(repeatOf(completed.claim))).toBe(false);
    const released = await setUp();
    const release = { started: true, keepAttempts: false, code: undefined } as const;
    await released.store.release({ ...released.claim, ...release });
    expect(await released.takeover(repeatOf(released.claim))).toBe(false);
    await until(async () => (await outsider(url).exists(released.name)) === 0, "nothing was made");
  });
});
