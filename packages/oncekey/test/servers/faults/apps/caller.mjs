/**
 * @module test/servers/faults/apps/caller
 *
 * An application as far as these tests need one: it protects work whose effect is a line in the log (or, under exactly-once, a row), and
 * tells the points that it passes. Tests run it in their own process and, to be killed or stopped, in others (`app.mjs`).
 */
import { randomUUID } from "node:crypto";
import { createIdempotency, isOncekeyError } from "oncekey";

/**
 * The points of one call, in their order. A test can hold a call at any of them.
 *
 * @typedef {"before-claim" | "claimed" | "after-effect" | "before-completion" | "after-completion" | "before-answer"} Point
 *
 * @typedef {object} CallOptions
 * @property {string} label names the key
 * @property {import("oncekey").Guarantee} guarantee
 * @property {number} [waitMs] waits for a call in flight; else it is refused
 * @property {number} [workMs] how long the work takes before its effect
 * @property {boolean} [confirms] the work asks whether it still holds its claim right before its effect
 * @property {readonly number[]} [touches] accounts that the work changes in its transaction, in this order, with time for others in between
 * @property {Point} [haltAt]
 *
 * @typedef {{ readonly kind: "executed" | "replayed" | "unprotected", readonly run: string } | { readonly kind: "refused", readonly code: string }} Outcome
 *
 * @typedef {object} CallerOptions
 * @property {string} name of this process, for the log
 * @property {import("./stores.mjs").Opened} opened
 * @property {import("./effect-log.mjs").EffectLog} log
 * @property {number} leaseMs
 * @property {import("oncekey").Policy} [policy]
 * @property {number} [loses] the share of store calls that are never answered; half of them land
 * @property {(point: Point, label: string) => Promise<void>} [onPoint]
 */

/** @param {CallerOptions} options */
export function createCaller({
  name,
  opened,
  log,
  leaseMs,
  policy = {},
  loses = 0,
  onPoint = async () => {},
}) {
  /** @type {Map<string, Point>} */
  const halts = new Map();
  const pass = async (/** @type {Point} */ point, /** @type {string} */ label) => {
    if (halts.get(label) !== point) return;
    // Once for each call: what is sent again in the background is not held up again.
    halts.delete(label);
    await onPoint(point, label);
  };
  const idempotency = createIdempotency({
    store: watchedStore(loses === 0 ? opened.store : lossyStore(opened.store, loses), pass),
    scope: "global",
    leaseMs,
    acceptsLostWrites: true,
    // Tests hold transactions open for longer than their default allows.
    maxTransactionMs: 5 * leaseMs,
    ...policy,
    onEvent: (event) => {
      if (!("operation" in event)) return;
      const cause = "cause" in event && event.cause !== undefined ? { cause: String(event.cause) } : {};
      log.append({ kind: "event", type: event.type, label: event.operation, process: name, ...cause });
    },
  });

  /** @param {CallOptions} options */
  const work = ({ label, guarantee, workMs = 0, confirms = false, touches = [] }) => {
    const run = randomUUID();
    return async (/** @type {import("oncekey").Work<any>} */ { attempt, transaction, assertHeld }) => {
      log.append({ kind: "start", label, run, attempt, process: name });
      await pass("claimed", label);
      if (workMs > 0) await new Promise((resolve) => setTimeout(resolve, workMs));
      if (confirms) assertHeld();
      for (const id of touches) {
        await opened.touch?.(transaction, id);
        await new Promise((resolve) => setTimeout(resolve, 150));
      }
      if (guarantee === "exactly-once") await opened.insert?.(transaction, { label, run });
      else log.append({ kind: "effect", label, run, attempt, process: name });
      await pass("after-effect", label);
      return { run };
    };
  };

  /**
   * @param {CallOptions} options
   * @returns {Promise<Outcome>} rejects only with what is no refusal of the library, nor of the database to its work
   */
  async function call(options) {
    const { label, guarantee, waitMs, haltAt } = options;
    if (haltAt) halts.set(label, haltAt);
    const of = { operation: label, key: "k", input: 1, guarantee };
    const onInFlight = waitMs === undefined ? "reject" : { waitMs };
    try {
      const { kind, result } = await idempotency.runWithOutcome(
        { ...of, onInFlight: /** @type {import("oncekey").OnInFlight} */ (onInFlight) },
        work(options),
      );
      await pass("before-answer", label);
      log.append({ kind: "answer", label, how: kind, run: result.run, process: name });
      return { kind, run: result.run };
    } catch (error) {
      const code = isOncekeyError(error) ? error.code : codeOfDatabase(error);
      if (code === undefined) throw error;
      log.append({ kind: "refusal", label, code, process: name });
      return { kind: "refused", code };
    }
  }

  /** So that no first call has to connect, and to find its tables, within the time that a call may take. */
  async function warmUp() {
    for (let attempt = 1; ; attempt += 1) {
      try {
        await idempotency.find({ operation: "warm-up", key: "k" });
        return;
      } catch (error) {
        if (attempt === 100) throw error;
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    }
  }

  const find = (/** @type {string} */ label) => idempotency.find({ operation: label, key: "k" });

  return {
    call,
    find,
    warmUp,
    close: () => idempotency.close({ graceMs: 2_000 }),
    store: opened.store,
    halts,
  };
}

/**
 * A statement of the work can be refused too: its error is the work's own, and comes to the caller as it is.
 *
 * @param {unknown} error
 * @returns {string | undefined}
 */
function codeOfDatabase(error) {
  const { code, sqlState } = /** @type {{ code?: string, sqlState?: string }} */ (error);
  const state = sqlState ?? code;
  return state === "40P01" || state === "40001" ? "DATABASE_REFUSED" : undefined;
}

/**
 * A store whose calls pass the points that lie between the core and it.
 *
 * @param {import("oncekey").Store<any>} store
 * @param {(point: Point, label: string) => Promise<void>} pass
 * @returns {import("oncekey").Store<any>}
 */
function watchedStore(store, pass) {
  const { begin } = store;
  return {
    ...store,
    claim: async (request) => {
      await pass("before-claim", request.operation);
      return store.claim(request);
    },
    complete: async (request) => {
      await pass("before-completion", request.operation);
      const outcome = await store.complete(request);
      await pass("after-completion", request.operation);
      return outcome;
    },
    ...(begin && {
      begin: (request) => {
        const session = begin(request);
        return {
          ...session,
          commit: async (outcome, what) => {
            await pass("before-completion", request.operation);
            const result = await session.commit(outcome, what);
            await pass("after-completion", request.operation);
            return result;
          },
        };
      },
    }),
  };
}

/**
 * A store that does not answer every call, as a network that loses packets both on the way there and on the way back.
 *
 * @param {import("oncekey").Store<any>} store
 * @param {number} share
 * @returns {import("oncekey").Store<any>}
 */
function lossyStore(store, share) {
  let calls = 0;
  const each = Math.round(1 / share);
  /**
   * @template Request, Answer
   * @param {(request: Request) => Answer | Promise<Answer>} send
   * @returns {(request: Request) => Promise<Answer>}
   */
  const lossy = (send) => async (request) => {
    calls += 1;
    if (calls % each !== 0) return send(request);
    // By turns: the request is lost, the answer is lost.
    if (calls % (2 * each) === 0) await send(request);
    return new Promise(() => {});
  };
  return {
    ...store,
    claim: lossy(store.claim),
    extend: lossy(store.extend),
    complete: lossy(store.complete),
    release: lossy(store.release),
    status: lossy(store.status),
  };
}
