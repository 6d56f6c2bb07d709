/**
 * @module test/servers/faults/apps/app
 *
 * An application in a process of its own, to be killed and stopped: `node app.mjs <settings as JSON>`. It runs the built package, as
 * any other process would.
 *
 * Its parent sends `{ id, call }` and gets `{ id, outcome }`. A call that is to halt somewhere says `{ halted, label }` when it is
 * there, and stays until `{ go: label }`.
 */
import { createCaller } from "./caller.mjs";
import { effectLog } from "./effect-log.mjs";
import { storeKinds } from "./stores.mjs";

/**
 * @typedef {object} AppSettings
 * @property {string} name
 * @property {import("./stores.mjs").StoreName} storeName
 * @property {string} address
 * @property {string} logPath
 * @property {number} leaseMs
 * @property {number} clockOffMs how far this process' wall clock is off
 * @property {import("oncekey").Policy} policy
 *
 * @typedef {{ readonly id: number, readonly call: import("./caller.mjs").CallOptions } | { readonly go: string }} ToApp
 */

/** @type {AppSettings} */
const { name, storeName, address, logPath, leaseMs, clockOffMs, policy } = JSON.parse(
  process.argv[2] ?? "{}",
);
if (clockOffMs !== 0) shiftWallClock(clockOffMs);

const log = effectLog(logPath);
process.on("unhandledRejection", (reason) => {
  log.append({ kind: "stray", label: "", message: String(reason), process: name });
});

/** @type {Map<string, () => void>} */
const halted = new Map();
/** @param {object} message */
const tell = (message) => process.send?.(message);

const caller = createCaller({
  name,
  opened: await storeKinds[storeName].open(address),
  log,
  leaseMs,
  policy,
  onPoint: (point, label) =>
    new Promise((resolve) => {
      halted.set(label, resolve);
      tell({ halted: point, label });
    }),
});

process.on("message", (/** @type {ToApp} */ message) => {
  if ("go" in message) {
    caller.halts.delete(message.go);
    halted.get(message.go)?.();
    return;
  }
  const { id, call } = message;
  caller.call(call).then(
    (outcome) => tell({ id, outcome }),
    (error) => tell({ id, outcome: { kind: "threw", message: String(error) } }),
  );
});
process.on("disconnect", () => process.exit());
await caller.warmUp();
tell({ ready: true });

/** @param {number} offMs */
function shiftWallClock(offMs) {
  const RealDate = Date;
  globalThis.Date = /** @type {DateConstructor} */ (
    class extends RealDate {
      /** @param {[]} args */
      constructor(...args) {
        if (args.length === 0) super(RealDate.now() + offMs);
        else super(...args);
      }

      /** @override */
      static now() {
        return RealDate.now() + offMs;
      }
    }
  );
}
