/**
 * @module
 * The Idempotency-Key protocol, once for every framework.
 *
 * An adapter translates a request into `HttpRequest` and lets its response be steered through `HttpAnswering`; every
 * decision about keys, scopes, fingerprints, replays and refusals is made here, and about claims in the core.
 *
 * Invariants: a malformed key, a missing scope or an oversize request never reaches the store; the fingerprint is
 * computed before the handler can change its input; a final answer is judged once, whoever made it; our own refusals are never
 * stored; a complete answer leaves only after its completion is on record (or has been given up to the background).
 */
import type { Ended, Performed } from "../core/call.js";
import { isOncekeyError, OncekeyError, unreachable } from "../core/errors.js";
import type { CallOutcome } from "../core/events.js";
import type { Idempotency, Internals } from "../core/idempotency.js";
import type { Work } from "../core/work.js";
import type { CapturedAnswer, HeaderLine } from "./answer.js";
import { ask, type ReadAhead, readAhead } from "./asking.js";
import { judge } from "./judgement.js";
import { shapeOf } from "./operation.js";
import { type HttpOptions, type Route, resolveRoute } from "./options.js";
import type { HttpAnswering, HttpRequest } from "./port.js";
import { refusalOf } from "./refusal.js";
import { replayOf } from "./replay.js";

export interface Exchange<C> {
  /** Whether requests of this method are protected. Others need not be put to `handle`; if they are, they pass. */
  protects(method: string): boolean;
  /**
   * Answers one request. Rejects only with what is no refusal of ours: faults of functions given in options.
   *
   * @param ahead what `readAhead` gave, where it was asked.
   */
  handle(request: HttpRequest<C>, answering: HttpAnswering, ahead?: ReadAhead): Promise<void>;
  /**
   * Reads key and fingerprint now, for a framework that alters a body between its parser and its handler. Whatever is
   * wrong with them is refused by `handle`.
   */
  readAhead(request: HttpRequest<C>): ReadAhead | Promise<ReadAhead>;
}

/**
 * Prepares a route.
 *
 * @throws OncekeyError `CONFIGURATION_INVALID` with everything that is wrong with the options.
 */
export function createExchange<C>(idempotency: Idempotency, options: HttpOptions<C>): Exchange<C> {
  const route = resolveRoute(idempotency, options);
  const { internals } = idempotency;
  return {
    protects: (method) => route.methods.has(method),
    readAhead: (request) => readAhead(route, request),
    async handle(request, answering, ahead) {
      const operation = route.operation ?? `${request.method} ${shapeOf(request)}`;
      if (!route.methods.has(request.method)) return pass(internals, operation, answering, "passthrough");
      let started = false;
      const run = (work: Work): Promise<Ended<CapturedAnswer>> => {
        started = true;
        return runHandler(internals, route, answering, work);
      };
      try {
        const asked = await ask(internals, route, operation, { request, ahead, run });
        if (asked.kind === "pass") return pass(internals, operation, answering, asked.outcome);
        if (asked.kind === "left") return;
        const performed = await internals.perform(asked.call);
        await answer(route, request, answering, performed);
      } catch (error) {
        await refuse(route, request, answering, error, started);
      }
    },
  };
}

function pass(internals: Internals, operation: string, answering: HttpAnswering, outcome: CallOutcome): void {
  internals.emit({ type: "finished", operation, key: undefined, outcome, tookMs: 0, waitedMs: 0 });
  answering.pass();
}

const DEGRADED: readonly HeaderLine[] = [["Idempotency-Degraded", "store-unavailable"]];

async function runHandler<C>(
  internals: Internals,
  route: Route<C>,
  answering: HttpAnswering,
  work: Work,
): Promise<Ended<CapturedAnswer>> {
  const { policy, drainMs } = route;
  const { answer, before } = await answering.start(work, {
    hold: policy.guarantee === "exactly-once" ? "everything" : "end",
    maxResultBytes: policy.maxResultBytes,
    drainMs,
    clock: internals.clock,
    headers: work.protected ? [] : DEGRADED,
  });
  return judge(internals, route, answer, before);
}

/** Turns what became of the call into what the client gets. */
async function answer<C>(
  route: Route<C>,
  request: HttpRequest<C>,
  answering: HttpAnswering,
  performed: Performed<CapturedAnswer>,
): Promise<void> {
  switch (performed.kind) {
    case "executed":
    case "unprotected":
      if (performed.value.kind === "outgrown") throw resultTooLarge();
      return answering.release();
    case "superseded": {
      const replay = await replayOf(route, request, performed.outcome);
      if (!answering.replaceWith(replay)) answering.release();
      return;
    }
    case "replayed":
      await answering.send(await replayOf(route, request, performed.outcome));
      return;
    default:
      return unreachable(performed);
  }
}

function resultTooLarge(): OncekeyError<"RESULT_TOO_LARGE"> {
  return new OncekeyError(
    "RESULT_TOO_LARGE",
    "The answer is a stream larger than what can be committed with the work, so both were rolled back.",
  );
}

/** Renders a refusal. After the handler has begun it can only take the place of what is still held back. */
async function refuse<C>(
  route: Route<C>,
  request: HttpRequest<C>,
  answering: HttpAnswering,
  error: unknown,
  started: boolean,
): Promise<void> {
  if (!started && request.left()?.aborted === true) return;
  try {
    if (!isOncekeyError(error)) throw error;
    const refusal = await refusalOf(route, request, error);
    if (!started) await answering.send(refusal);
    else if (!answering.replaceWith(refusal)) answering.cut();
  } catch (fault) {
    // An answer that is held back would otherwise be waited for until the client gives up.
    if (started) answering.cut();
    throw fault;
  }
}
