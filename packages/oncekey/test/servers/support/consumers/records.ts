/**
 * @module test/servers/support/consumers/records
 *
 * What the subjects of all brokers share: records in Redis, and a worker process that uses them too and kills itself.
 */
import { fork } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Redis } from "ioredis";
import { fromIoredis, redisStore } from "oncekey/stores/redis";
import type { ConsumerSubject } from "oncekey/testing";
import { requireFreshBuild } from "../../faults/app-process.js";
import type { CrashSettings } from "./crashing.mjs";

const crashing = fileURLToPath(new URL("crashing.mjs", import.meta.url));

/** @param client the URL of the file that exports `consume`. */
export function sharedRecords(
  redisUrl: string,
  client: string,
  place: string,
): Pick<ConsumerSubject, "store" | "crash" | "close"> {
  requireFreshBuild();
  const prefix = `records-${randomUUID()}:`;
  const folder = mkdtempSync(join(tmpdir(), "oncekey-consumer-"));
  const redis = new Redis(redisUrl, { lazyConnect: true });
  const store = redisStore(fromIoredis(redis), { prefix });
  return {
    store,
    async crash(at) {
      const effects = join(folder, randomUUID());
      const settings: CrashSettings = { client, at, place, redisUrl, prefix, effects };
      const child = fork(crashing, [JSON.stringify(settings)]);
      const [, signal] = await once(child, "exit");
      if (signal !== "SIGKILL") throw new Error("the process ended before it could kill itself");
      return existsSync(effects) ? readFileSync(effects, "utf8").trim().split("\n") : [];
    },
    async close() {
      await store.close();
      redis.disconnect();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
