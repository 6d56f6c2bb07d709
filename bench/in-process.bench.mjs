/**
 * @module
 * What one request costs inside the process: Fastify with `inject`, no sockets. The least of many small batches is shown,
 * which a busy machine disturbs little, and on a slow network stack shows what is the library's and what the sockets'. So
 * small a batch mostly escapes the garbage collector: that is in the figures of `http.bench.mjs`.
 *
 * Each variant has a process of its own, as a server has: several in one make each other's code slower. They take turns.
 *
 * `node in-process.bench.mjs [batches]`.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { prepare, VARIANTS } from "./lib/injected.mjs";
import { section, table } from "./lib/report.mjs";

const batches = Number(process.argv[2] ?? 60);
const BATCH = 50;
const WARM = 8_000;

async function microseconds(send) {
  const began = performance.now();
  for (let index = 0; index < BATCH; index += 1) await send();
  return ((performance.now() - began) * 1000) / BATCH;
}

/** In a child: one batch of each kind whenever the parent asks. */
async function serve(variant) {
  const { first, replay } = await prepare(variant);
  for (let index = 0; index < WARM; index += 1) {
    await first();
    await replay();
  }
  process.on("message", async () => {
    process.send({ firstUs: await microseconds(first), replayUs: await microseconds(replay) });
  });
  process.send("ready");
}

async function open(variant) {
  const child = fork(new URL(import.meta.url), { env: { ...process.env, VARIANT: variant } });
  await once(child, "message");
  return { variant, child, firstUs: Number.POSITIVE_INFINITY, replayUs: Number.POSITIVE_INFINITY };
}

async function runBatch(one) {
  one.child.send("batch");
  const [{ firstUs, replayUs }] = await once(one.child, "message");
  one.firstUs = Math.min(one.firstUs, firstUs);
  one.replayUs = Math.min(one.replayUs, replayUs);
}

async function measure() {
  const all = [];
  for (const variant of VARIANTS) all.push(await open(variant));
  for (let batch = 0; batch < batches; batch += 1) for (const one of all) await runBatch(one);
  for (const { child } of all) child.kill();
  report(all);
}

function report(all) {
  const [bare] = all;
  section("fastify without sockets, nested body: the least of many batches");
  table(
    ["variant", "first µs", "added µs", "replay µs", "added µs"],
    all.map(({ variant, firstUs, replayUs }) => [
      variant,
      firstUs.toFixed(0),
      (firstUs - bare.firstUs).toFixed(0),
      replayUs.toFixed(0),
      (replayUs - bare.replayUs).toFixed(0),
    ]),
  );
}

if (process.env.VARIANT === undefined) await measure();
else await serve(process.env.VARIANT);
