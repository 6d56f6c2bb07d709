import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { fromIoredis, redisStore } from "oncekey/stores/redis";
import { expect, it, onTestFinished } from "vitest";
import { kinds } from "../../../../../scripts/services/kinds.mjs";
import { freePort } from "../../../../../scripts/services/ports.mjs";
import { findPrograms } from "../../../../../scripts/services/programs.mjs";
import { ownServer } from "../support/servers.js";
import { claimOf, completionOf, outsider, repeatOf, until } from "./fixture.js";

/** A sentinel of its own, which watches `primary` and needs nobody's vote. */
async function sentinel(program: string, primary: { readonly port: number }): Promise<number> {
  const port = await freePort();
  const folder = mkdtempSync(join(tmpdir(), "oncekey-sentinel-"));
  const file = join(folder, "sentinel.conf");
  const lines = [
    `port ${port}`,
    "bind 127.0.0.1",
    "protected-mode no",
    `dir ${folder}`,
    `sentinel monitor orders 127.0.0.1 ${primary.port} 1`,
    "sentinel down-after-milliseconds orders 500",
    "sentinel failover-timeout orders 5000",
  ];
  writeFileSync(file, lines.join("\n"));
  const child = spawn(program, [file, "--sentinel"], { stdio: "ignore" });
  const ended = once(child, "exit");
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await ended;
    rmSync(folder, { recursive: true, force: true });
  });
  return port;
}

const found = await findPrograms(kinds.redis.needs);
// In a container Sentinel would see other addresses than this process does.
const [program] = found.kind === "local" ? found.programs : [];

if (program !== undefined) {
  it("a failover by Sentinel is followed with the client's own configuration", async () => {
    const primary = await ownServer("redis");
    onTestFinished(primary.close);
    const replica = await ownServer("redis", {
      settings: { replicaof: `127.0.0.1 ${primary.port}`, "repl-diskless-sync-delay": "0" },
    });
    onTestFinished(replica.close);
    const onReplica = outsider(replica.url);
    await until(async () => (await onReplica.info("replication")).includes("link_status:up"), "the link");
    const port = await sentinel(program, primary);
    const asked = outsider(`redis://127.0.0.1:${port}`);
    const knowsReplica = async () => {
      const replicas = (await asked.call("SENTINEL", "REPLICAS", "orders")) as unknown[];
      return replicas.length === 1;
    };
    await until(() => knowsReplica().catch(() => false), "Sentinel knows the replica", 15_000);

    const settings = { sentinels: [{ host: "127.0.0.1", port }], name: "orders", lazyConnect: true };
    const store = redisStore(fromIoredis(new Redis(settings)), { answerTimeoutMs: 500 });
    onTestFinished(() => store.close());
    await until(
      () =>
        store.ready().then(
          () => true,
          () => false,
        ),
      "the connection",
    );
    expect(store.traits.forgetsOn.failover).toBe(true);
    const notices: string[] = [];
    store.notices?.(({ kind }) => notices.push(kind));
    const claim = claimOf();
    await store.claim(claim);
    await store.complete(completionOf(claim));
    let woken = 0;
    const waited = claimOf();
    await until(async () => (await outsider(primary.url).wait(1, 1_000)) === 1, "the replica has it");
    await primary.stop("SIGKILL");

    const answers = () =>
      store.claim(repeatOf(claim)).then(
        ({ kind }) => kind === "completed",
        () => false,
      );
    await until(answers, "the promoted replica answers", 18_000);
    await until(() => notices.includes("server-replaced"), "the notice");
    // Who listens has moved along.
    await store.claim(waited);
    store.watch?.(waited.key, () => {
      woken += 1;
    });
    await until(
      async () => ((await onReplica.pubsub("SHARDCHANNELS")) as unknown[]).length === 1,
      "listening",
    );
    await store.complete(completionOf(waited));
    await until(() => woken > 0, "the wake-up");
  }, 60_000);
}
