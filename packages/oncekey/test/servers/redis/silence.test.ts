/** A server that stands still while calls go on: writing to it is no sign of its life. */
import { describe, expect, it, onTestFinished } from "vitest";
import { ownServer } from "../support/servers.js";
import { claimOf, FAMILIES, openStore, until } from "./fixture.js";

describe.each(FAMILIES)("with %s", (family) => {
  it("a call that is owed an answer fails in time, though others are made without a pause", async () => {
    const redis = await ownServer("redis");
    onTestFinished(redis.close);
    const store = openStore(family, redis.url, { answerTimeoutMs: 400 });
    await store.ready();
    await redis.pause();
    let refused = 0;
    const claim = () =>
      store.claim(claimOf()).then(
        () => true,
        () => {
          refused += 1;
          return false;
        },
      );
    const pausedAtMs = performance.now();
    while (refused === 0 && performance.now() - pausedAtMs < 5_000) {
      void claim();
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await redis.resume();
    expect(refused).toBeGreaterThan(0);
    await until(claim, "a new connection");
  });
});
