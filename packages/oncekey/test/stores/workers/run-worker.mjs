/**
 * @module
 * A process of its own that runs protected work on the file its parent names: `node run-worker.mjs <path>`.
 *
 * The work begins at once, tells its parent, and ends as the parent says with its next message: `"return"` or `"throw"`. The
 * first thing that it does then is to ask whether it still holds its claim. It runs the built package, as any other process
 * would.
 */
import { setTimeout as delay } from "node:timers/promises";
import Database from "libsql";
import { createIdempotency } from "oncekey";
import { fromLibsql, sqliteStore } from "oncekey/stores/sqlite";

const path = process.argv[2] ?? "";
const idempotency = createIdempotency({
  store: sqliteStore(
    fromLibsql(() => new Database(path)),
    { sweepIntervalMs: 0 },
  ),
  scope: "global",
  leaseMs: 1_000,
});

/** @param {object} message */
const tell = (message) => process.send?.(message);

/** @type {Promise<unknown>} */
const told = new Promise((resolve) => process.once("message", resolve));

/** @param {import("oncekey").Work} work */
async function stopped({ assertHeld, signal }) {
  tell({ started: true });
  const how = await told;
  /** @type {unknown} */
  let asserted;
  try {
    assertHeld();
  } catch (error) {
    asserted = /** @type {{ code?: unknown }} */ (error).code;
  }
  await delay(1);
  tell({ asserted, aborted: signal.aborted });
  if (how === "throw") throw new Error("too late");
  return "too late";
}

idempotency.runWithOutcome({ operation: "charge", key: "k", input: 1 }, stopped).then(
  (outcome) => tell({ outcome }),
  (error) => tell({ error: error.message }),
);
process.on("disconnect", () => process.exit());
