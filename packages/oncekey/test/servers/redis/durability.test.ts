import { describe, expect, it, onTestFinished } from "vitest";
import { ownServer } from "../support/servers.js";
import { claimOf, completionOf, FAMILIES, openStore, outsider, repeatOf, until } from "./fixture.js";

async function server(settings: Record<string, string> = {}) {
  const redis = await ownServer("redis", { settings });
  onTestFinished(redis.close);
  return redis;
}

describe.each(FAMILIES)("WAIT, with %s", (family) => {
  it("acknowledges what a replica has, and nothing else", async () => {
    const primary = await server();
    const replica = await server({ replicaof: `127.0.0.1 ${primary.port}`, "repl-diskless-sync-delay": "0" });
    const onReplica = outsider(replica.url);
    await until(
      async () => (await onReplica.info("replication")).includes("master_link_status:up"),
      "the link",
    );
    const prefix = "wait:";
    const durability = { wait: { replicas: 1, timeoutMs: 200 } };
    const store = openStore(family, primary.url, { prefix, durability });
    await store.ready();
    const claim = claimOf();
    const on = (name: string) => onReplica.exists(prefix + name);
    expect(await store.claim(claim)).toMatchObject({ kind: "claimed" });
    expect(await on(claim.key)).toBe(1);
    expect(await store.complete(completionOf(claim))).toEqual({ kind: "completed", how: "stored" });
    expect((await onReplica.getrange(prefix + claim.key, 2, 2)).toString()).toBe("D");

    await replica.pause();
    const unconfirmed = {
      code: "STORE_UNAVAILABLE",
      message: expect.stringContaining("WAIT was confirmed by 0"),
    };
    const other = claimOf();
    await expect(store.claim(other)).rejects.toMatchObject(unconfirmed);
    // It has landed, so asked again with its token it is the same claim, as soon as the replica has it.
    await expect(store.claim(other)).rejects.toMatchObject(unconfirmed);
    // What is only read does not wait.
    expect(await store.claim(repeatOf(claim))).toMatchObject({ kind: "completed" });
    await replica.resume();
    expect(await store.claim(other)).toMatchObject({ kind: "claimed", attempt: 1 });
    expect(await store.release({ ...other, started: false, keepAttempts: false, code: undefined })).toEqual({
      kind: "released",
    });
  });
});

describe.each(FAMILIES)("WAITAOF, with %s", (family) => {
  it("acknowledges what the disk has, and a server that lacks it is named at the start", async () => {
    const redis = await server({ appendonly: "yes", appendfsync: "always" });
    const [, major = "0", minor = "0"] =
      /redis_version:(\d+)\.(\d+)/.exec(await outsider(redis.url).info("server")) ?? [];
    const known = Number(major) > 7 || (Number(major) === 7 && Number(minor) >= 2);
    const store = openStore(family, redis.url, {
      durability: { waitAof: { local: 1, replicas: 0, timeoutMs: 1_000 } },
    });
    await store.ready();
    const warnings: string[] = [];
    store.notices?.(({ text }) => warnings.push(text));
    expect(warnings.some((text) => text.includes("no WAITAOF"))).toBe(!known);
    const answer = await store.claim(claimOf()).then(
      ({ kind }) => kind,
      ({ code, message }: Error & { code: string }) => [code, message.includes("waitAof")],
    );
    expect(answer).toEqual(known ? "claimed" : ["STORE_UNAVAILABLE", true]);
  });
});
