/**
 * @module
 * What one request allocates, and what of it stays: Fastify with `inject`, no sockets. Bytes are hardly disturbed by whatever else
 * a machine does, so this is what to look at first on a busy one.
 *
 * Each variant has a process of its own whose young generation is so large that nothing is collected while it counts.
 *
 * `node garbage.bench.mjs`.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { prepare, VARIANTS } from "./lib/injected.mjs";
import { section, table } from "./lib/report.mjs";

const WARM = 12_000;
/** So many that single objects do not show, and so few that their garbage fits into the young generation. */
const REQUESTS = 3_000;
const YOUNG_MIB = 512;

async function bytes(send) {
  for (let index = 0; index < WARM; index += 1) await send();
  globalThis.gc();
  const before = process.memoryUsage().heapUsed;
  for (let index = 0; index < REQUESTS; index += 1) await send();
  const made = process.memoryUsage().heapUsed - before;
  globalThis.gc();
  const kept = process.memoryUsage().heapUsed - before;
  return { made: made / REQUESTS, kept: kept / REQUESTS };
}

async function serve(variant) {
  const { first, replay } = await prepare(variant);
  const firsts = await bytes(first);
  process.send({ variant, first: firsts, replay: await bytes(replay) }, () => process.exit(0));
}

async function measure() {
  const execArgv = [
    "--expose-gc",
    `--min-semi-space-size=${YOUNG_MIB}`,
    `--max-semi-space-size=${YOUNG_MIB}`,
  ];
  const all = [];
  for (const variant of VARIANTS) {
    const child = fork(new URL(import.meta.url), { env: { ...process.env, VARIANT: variant }, execArgv });
    all.push((await once(child, "message"))[0]);
  }
  report(all);
}

function report(all) {
  const [bare] = all;
  section("fastify without sockets, nested body: bytes of the heap for each request");
  table(
    ["variant", "first", "added", "kept", "replay", "added"],
    all.map(({ variant, first, replay }) => [
      variant,
      first.made.toFixed(0),
      (first.made - bare.first.made).toFixed(0),
      first.kept.toFixed(0),
      replay.made.toFixed(0),
      (replay.made - bare.replay.made).toFixed(0),
    ]),
  );
}

if (process.env.VARIANT === undefined) await measure();
else await serve(process.env.VARIANT);
