/**
 * @module
 * A process that does work of three steps on the store its parent names, to be killed in the middle of it:
 * `node step-worker.mjs <settings as JSON>`. It runs the built package, as any other process would.
 *
 * It says `{ halted }` where it is told to halt, and stays there; otherwise `{ outcome }` or `{ error }`, and ends.
 */
import { appendFileSync } from "node:fs";
import { createIdempotency, GLOBAL_SCOPE } from "oncekey";
import { storeKinds } from "../servers/faults/apps/stores.mjs";

/**
 * @typedef {object} StepSettings
 * @property {import("../servers/faults/apps/stores.mjs").StoreName} storeName
 * @property {string} address
 * @property {string} key
 * @property {string} logPath gets the name of each step that has its effect
 * @property {"at-least-once" | "exactly-once"} guarantee
 * @property {number} leaseMs
 * @property {string | undefined} haltAt `in` or `after` and the name of a step, or `after rows`
 */

/** @type {StepSettings} */
const { storeName, address, key, logPath, guarantee, leaseMs, haltAt } = JSON.parse(process.argv[2] ?? "{}");
const { store, insert, close } = await storeKinds[storeName].open(address);
// The lease of who was killed has just been renewed, at worst.
const idempotency = createIdempotency({ store, leaseMs, onInFlight: { waitMs: 3 * leaseMs } });

/** @param {string} point */
const reach = (point) => {
  if (point !== haltAt) return undefined;
  process.send?.({ halted: point });
  return new Promise(() => {
    // For somebody who is to be killed, a timer is reason enough to live on.
    setInterval(() => {}, 1_000);
  });
};

/** @param {import("oncekey").Work} work */
async function order({ step, transaction, attempt }) {
  const done = [];
  for (const name of ["reserve", "pay", "ship"]) {
    const by = await step(name, async () => {
      appendFileSync(logPath, `${name}\n`);
      await reach(`in ${name}`);
      return process.pid;
    });
    done.push(by);
    await reach(`after ${name}`);
  }
  if (guarantee === "exactly-once") await insert?.(transaction, { label: key, run: `${attempt}` });
  await reach("after rows");
  return done;
}

const call = /** @type {const} */ ({ operation: "order", scope: GLOBAL_SCOPE, key, fingerprint: "off" });
try {
  // The types do not know which of the stores it is.
  const outcome = await idempotency.runWithOutcome(
    { ...call, guarantee: /** @type {never} */ (guarantee) },
    order,
  );
  process.send?.({ outcome });
} catch (error) {
  process.send?.({ error: `${error}` });
}
await idempotency.close();
await close();
process.disconnect();
