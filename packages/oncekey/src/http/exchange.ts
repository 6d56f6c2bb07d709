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
import { type Awaitable, started, whenDone } from "../core/awaitable.js";
import type { Ended, Performed } from "../core/call.js";
import { isOncekeyError, OncekeyError, unreachable } from "../core/errors.js";
import type { CallOutcome } from "../core/events.js";
import type { Idempotency, Internals } from "../core/idempotency.js";
import type { Begun } from "../core/work.js";
import type { CapturedAnswer, HeaderLine } from "./answer.js";
import { ask, type ReadAhead, readAhead } from "./asking.js";
import { judge } from "./judgement.js";
import { operationsOf } from "./operation.js";
import { type HttpOptions, type Route, resolveRoute } from "./options.js";
import type { HttpAnswering, HttpRequest } from "./port.js";
import { refusalOf } from "./refusal.js";
import { replayOf } from "./replay.js";

export interface Exchange<C> {
  /** Whether requests of this method are protected. Others need not be put to `handle`; if they are, they pass. */
  protects(method: string): boolean;
  /**
   * Answers one request, at once if nothing has to be waited for. Rejects, and never throws, only with what is no refusal
   * of ours: faults of functions given in options.
   *
   * @param ahead what `readAhead` gave, where it was asked.
   */
  handle(request: HttpRequest<C>, answering: HttpAnswering, ahead?: ReadAhead): Awaitable<void>;
  /**
   * Reads key and fingerprint now, for a framework that alters a body between its parser and its handler. Whatever is
   * wrong with them is refused by `handle`.
   */
  readAhead(request: HttpRequest<C>): Awaitable<ReadAhead>;
}

/** One request, on its way to an answer. */
interface Talk<C> {
  readonly internals: Internals;
  readonly route: Route<C>;
  readonly request: HttpRequest<C>;
  readonly answering: HttpAnswering;
  /** The handler has begun. */
  begun: boolean;
}

/**
 * Prepares a route.
 *
 * @throws OncekeyError `CONFIGURATION_INVALID` with everything that is wrong with the options.
 */
export function createExchange<C>(idempotency: Idempotency, options: HttpOptions<C>): Exchange<C> {
  const route = resolveRoute(idempotency, options);
  const { internals } = idempotency;
  const operationOf = operationsOf(route);
  return {
    protects: (method) => route.methods.has(method),
    readAhead: (request) => readAhead(route, request),
    handle(request, answering, ahead) {
      const talk: Talk<C> = { internals, route, request, answering, begun: false };
      return whenDone(
        started(() => converse(talk, operationOf(request), ahead)),
        done,
        (error) => refuse(talk, error),
      );
    },
  };
}

function done(): void {}

function converse<C>(talk: Talk<C>, operation: string, ahead: ReadAhead | undefined): Awaitable<void> {
  const { internals, route, request, answering } = talk;
  if (!route.methods.has(request.method)) return pass(internals, operation, answering, "passthrough");
  const run = (begun: Begun): Awaitable<Ended<CapturedAnswer>> => runHandler(talk, begun);
  return whenDone(ask({ internals, route, operation, request, ahead, run }), (asked) => {
    if (asked.kind === "pass") return pass(internals, operation, answering, asked.outcome);
    if (asked.kind === "left") return;
    return whenDone(internals.perform(asked.call), (performed) => answer(talk, performed));
  });
}

function pass(internals: Internals, operation: string, answering: HttpAnswering, outcome: CallOutcome): void {
  internals.emit({ type: "finished", operation, key: undefined, outcome, tookMs: 0, waitedMs: 0 });
  answering.pass();
}

const DEGRADED: readonly HeaderLine[] = [["Idempotency-Degraded", "store-unavailable"]];
const NOTHING_ADDED: readonly HeaderLine[] = [];

function runHandler<C>(talk: Talk<C>, begun: Begun): Awaitable<Ended<CapturedAnswer>> {
  const { internals, route, answering } = talk;
  const { policy, drainMs } = route;
  talk.begun = true;
  const captured = answering.start(begun, {
    hold: policy.guarantee === "exactly-once" ? "everything" : "end",
    maxResultBytes: policy.maxResultBytes,
    drainMs,
    clock: internals.clock,
    headers: begun.protected ? NOTHING_ADDED : DEGRADED,
  });
  return whenDone(captured, ({ answer, before }) => judge(internals, route, answer, before));
}

/** Turns what became of the call into what the client gets. */
function answer<C>(
  { route, request, answering }: Talk<C>,
  performed: Performed<CapturedAnswer>,
): Awaitable<void> {
  switch (performed.kind) {
    case "executed":
    case "unprotected":
      if (performed.value.kind === "outgrown") throw resultTooLarge();
      return answering.release();
    case "superseded":
      return whenDone(replayOf(route, request, performed.outcome), (replay) => {
        if (!answering.replaceWith(replay)) answering.release();
      });
    case "replayed":
      return whenDone(replayOf(route, request, performed.outcome), answering.send);
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
async function refuse<C>({ route, request, answering, begun }: Talk<C>, error: unknown): Promise<void> {
  if (!begun && request.left()?.aborted === true) return;
  try {
    if (!isOncekeyError(error)) throw error;
    const refusal = await refusalOf(route, request, error);
    if (!begun) answering.send(refusal);
    else if (!answering.replaceWith(refusal)) answering.cut();
  } catch (fault) {
    // An answer that is held back would otherwise be waited for until the client gives up.
    if (begun) answering.cut();
    throw fault;
  }
}
