import { expect, it, onTestFinished, describe } from "vitest";
import { ownServer } from "../support/servers.js";
import { claimOf, completionOf, FAMILIES, openStore } from "./fixture.js";
describe.each(FAMILIES)("%s", (family) => {
it("rewatch", async () => {
  const redis = await ownServer("redis", {});
  onTestFinished(redis.close);
  const store = openStore(family, redis.url, {prefix: "x:"});
  const other = openStore(family, redis.url, {prefix: "x:"});
  await store.ready(); await other.ready();
  const claim = claimOf("a");
  await store.claim(claim);
  let n = 0;
  const first = store.watch?.(claim.key, () => { n += 1; });
  await new Promise((r) => setTimeout(r, 200));
  first?.close();
  store.watch?.(claim.key, () => { n += 1; });
  await new Promise((r) => setTimeout(r, 200));
  const before = n;
  await other.complete(completionOf(claim));
  await new Promise((r) => setTimeout(r, 300));
  expect(n).toBeGreaterThan(before);
});
it("silent under load", async () => {
  const redis = await ownServer("redis", {});
  onTestFinished(redis.close);
  const store = openStore(family, redis.url, { answerTimeoutMs: 400 });
  await store.ready();
  await redis.pause();
  let settled = 0, sent = 0;
  const start = Date.now();
  let first = 0;
  while (Date.now() - start < 2500) {
    sent += 1;
    store.claim(claimOf()).then(() => { settled += 1; first ||= Date.now() - start; }, () => { settled += 1; first ||= Date.now() - start; });
    await new Promise((r) => setTimeout(r, 20));
  }
  console.log(family, { sent, settled, first });
  await redis.resume();
  expect(first).toBeGreaterThan(0);
  expect(first).toBeLessThan(1200);
});
});
