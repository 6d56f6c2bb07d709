/**
 * @module
 * Starts servers and measures them in turns, so that a slow minute of the machine falls on all of them.
 */
import { fork } from "node:child_process";
import { once } from "node:events";

/** Starts one variant and waits until it listens. */
export async function start(framework, variant) {
  const child = fork(new URL("server.mjs", import.meta.url), [framework, variant]);
  const [{ port }] = await once(child, "message");
  return {
    port,
    async facts() {
      child.send("facts");
      const [facts] = await once(child, "message");
      return facts;
    },
    async stop() {
      const left = once(child, "exit");
      child.disconnect();
      await left;
    },
  };
}

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}

/**
 * Runs each variant once per round, in an order that turns, and gives the results of each.
 *
 * @param {readonly string[]} variants
 * @param {(variant: string) => Promise<T>} measureOne
 * @template T
 */
export async function inTurns(variants, rounds, measureOne) {
  const results = new Map(variants.map((variant) => [variant, []]));
  for (let round = 0; round < rounds; round += 1) {
    for (let index = 0; index < variants.length; index += 1) {
      const variant = variants[(index + round) % variants.length];
      results.get(variant).push(await measureOne(variant));
    }
  }
  return results;
}

/** The median over rounds of the ratio to `base` in the same round. */
export function ratio(results, variant, base, figure) {
  const own = results.get(variant);
  const others = results.get(base);
  return median(own.map((result, round) => figure(result) / figure(others[round])));
}
