/**
 * @module
 * A process of its own with a store on the file that its parent names: `node sqlite-worker.mjs <path>`.
 *
 * The parent sends `{ id, call, args }`, the worker answers `{ id, value }` or `{ id, error }`. It runs the
 * built package, as any other process would.
 */
import Database from "libsql";
import { fromLibsql, sqliteStore } from "oncekey/stores/sqlite";

/** @typedef {import("../../../src/core/store.js").ClaimRequest} ClaimRequest */

const path = process.argv[2] ?? "";
const store = sqliteStore(
  fromLibsql(() => new Database(path)),
  { sweepIntervalMs: 0, busyWaitMs: 10_000 },
);

/**
 * The transaction that this process holds open.
 *
 * @type {import("../../../src/core/store.js").TransactionSession<import("oncekey/stores/sqlite").SqliteTransaction> | undefined}
 */
let session;

/** @param {object} message */
const tell = (message) => process.send?.(message);

const calls = {
  claim: store.claim,
  complete: store.complete,

  /**
   * All at once; the kinds of their outcomes.
   *
   * @param {ClaimRequest[]} requests
   */
  claimAll: async (requests) =>
    (await Promise.all(requests.map((request) => store.claim(request)))).map(({ kind }) => kind),

  /**
   * Opens a transaction and writes a row through it; leaves it open.
   *
   * @param {import("../../../src/core/store.js").TransactionRequest} request
   */
  async openTransaction(request) {
    session = store.begin?.(request);
    await session?.handle.run("INSERT INTO payments (claim) VALUES (?)", [request.token]);
  },

  /** @param {import("../../../src/core/record.js").StoredOutcome} outcome */
  commit: (outcome) => session?.commit(outcome, "everything"),

  /**
   * Claims and completes one key after the other, saying which are done, until somebody ends the process.
   *
   * @param {ClaimRequest[]} requests
   * @param {import("../../../src/core/record.js").StoredOutcome} outcome
   */
  async work(requests, outcome) {
    for (const request of requests) {
      await store.claim(request);
      await store.complete({ ...request, attempt: 1, outcome });
      tell({ done: request.key });
    }
  },

  /**
   * A claim, and how often the event loop turned meanwhile.
   *
   * @param {ClaimRequest} request
   */
  async claimCountingTurns(request) {
    let turns = 0;
    const ticking = setInterval(() => {
      turns += 1;
    }, 1);
    const { kind } = await store.claim(request);
    clearInterval(ticking);
    return { kind, turns };
  },
};

/** @typedef {{ id: number, call: keyof typeof calls, args: unknown[] }} Question */

process.on("message", (/** @type {Question} */ { id, call, args }) => {
  const answer = /** @type {(...args: unknown[]) => Promise<unknown>} */ (calls[call]);
  answer(...args).then(
    (value) => tell({ id, value }),
    (error) => tell({ id, error: `${error.code ?? ""} ${error.message}` }),
  );
});
process.on("disconnect", () => process.exit());
tell({ ready: true });
