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
import type { Call, Ended, Performed } from "../core/call.js";
import { isOncekeyError, OncekeyError, unreachable } from "../core/errors.js";
import type { CallOutcome } from "../core/events.js";
import type { Fingerprint } from "../core/fingerprint.js";
import type { Idempotency, Internals } from "../core/idempotency.js";
import { GLOBAL_SCOPE, identify, MISSING_SCOPE, type ScopeValue, scopeOf } from "../core/key.js";
import { refusedBeforeWork } from "../core/policy.js";
import type { StoredOutcome } from "../core/record.js";
import type { Work } from "../core/work.js";
import { encodeDone } from "./done.js";
import { keepHeaders } from "./kept-headers.js";
import { readKey } from "./key-source.js";
import type { CapturedAnswer, NodeCaptureOptions } from "./node-capture.js";
import type { HeaderLine, WholeAnswer } from "./node-headers.js";
import { type HttpOptions, type Route, resolveRoute } from "./options.js";
import { readPreferredWaitMs } from "./prefer.js";
import { refusalOf } from "./refusal.js";
import { replayOf } from "./replay.js";
import type { RequestBody } from "./request-body.js";
import { encodeSnapshot, tombstoneOf } from "./snapshot.js";

/** What a body's reading gives: `gone` = consumed before us and not kept; `aborted` = its client has left. */
export type BodyReading =
  | RequestBody
  | { readonly kind: "too-large"; readonly length: number | undefined }
  | { readonly kind: "gone" }
  | { readonly kind: "aborted" };

/** A request, as far as the protocol looks at it. */
export interface HttpRequest<C> {
  /** What the framework hands its handler: given to `scope`, key functions and `workOf`. */
  readonly carrier: C;
  readonly method: string;
  /** Path and query as sent, mount included. */
  readonly target: string;
  /** The route's pattern, mount included; `undefined` where the framework has none. */
  readonly route: string | undefined;
  /** The field lines of a header, one entry each, unjoined where the framework can tell. */
  readonly lines: (name: string) => readonly string[];
  /** Reads the body so that the handler can read it again. Called at most once, before the handler starts. */
  readonly body: (maxBytes: number) => BodyReading | Promise<BodyReading>;
  /** Aborts when the client leaves. */
  readonly left: AbortSignal | undefined;
}

/** How a handler's answer is captured. */
export interface Capturing extends Pick<NodeCaptureOptions, "hold" | "maxResultBytes" | "drainMs" | "clock"> {
  /** To be set on the answer before the handler begins. */
  readonly headers: readonly HeaderLine[];
}

/** The answering side of one exchange. Exactly one of `pass`, `send` and `start` is called. */
export interface HttpAnswering {
  /** Lets the handler answer as if we were not there. */
  pass(): void;
  /** Answers in place of the handler, beside the headers that outer layers have set. */
  send(answer: WholeAnswer): void | Promise<void>;
  /** Starts the handler and captures its answer. Settles when that is whole, or never will be. */
  start(
    work: Work,
    capturing: Capturing,
  ): Promise<{ readonly answer: CapturedAnswer; readonly before: readonly HeaderLine[] }>;
  /** After `start`: lets go what is held back. */
  release(): void;
  /** After `start`: answers with this instead; `false` if something has left already. */
  replaceWith(answer: WholeAnswer): boolean;
  /** After `start`, when something has left that must not look complete: cuts the connection. */
  cut(): void;
}

export interface Exchange<C> {
  /** Answers one request. Rejects only with what is no refusal of ours: faults of functions given in options. */
  handle(request: HttpRequest<C>, answering: HttpAnswering): Promise<void>;
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
    async handle(request, answering) {
      const operation = route.operation ?? `${request.method} ${shapeOf(request)}`;
      if (!route.methods.has(request.method)) return pass(internals, operation, answering, "passthrough");
      let started = false;
      try {
        const asked = await ask(internals, route, operation, request);
        if (asked.kind === "pass") return pass(internals, operation, answering, asked.outcome);
        if (asked.kind === "left") return;
        const run = (work: Work): Promise<Ended<CapturedAnswer>> => {
          started = true;
          return runHandler(internals, route, answering, work);
        };
        const performed = await internals.perform<CapturedAnswer>({ ...asked.call, run });
        await answer(route, request, answering, performed);
      } catch (error) {
        await refuse(route, request, answering, error, started);
      }
    },
  };
}

/** `/orders/:id` and `/orders/:orderId` are one operation: renaming a parameter runs nothing again. */
function shapeOf({ route, target }: HttpRequest<unknown>): string {
  if (route === undefined) return pathOf(target);
  return route.replace(/([:*])[A-Za-z_$][\w$]*/g, "$1");
}

function pathOf(target: string): string {
  const end = target.search(/[?#]/);
  return end === -1 ? target : target.slice(0, end);
}

function pass(internals: Internals, operation: string, answering: HttpAnswering, outcome: CallOutcome): void {
  internals.emit({ type: "finished", operation, key: undefined, outcome, tookMs: 0, waitedMs: 0 });
  answering.pass();
}

type Asked =
  | { readonly kind: "call"; readonly call: Omit<Call<CapturedAnswer>, "run"> }
  | { readonly kind: "pass"; readonly outcome: CallOutcome }
  /** The client left while it was sending. */
  | { readonly kind: "left" };

/** Turns a request into a call of the core, or says why there is none. */
async function ask<C>(
  internals: Internals,
  route: Route<C>,
  operation: string,
  request: HttpRequest<C>,
): Promise<Asked> {
  try {
    // A key in the body needs the body first; any other is judged before a byte of it is read.
    const early = route.keyInBody ? await readRequestBody(route, request) : undefined;
    if (early === "aborted") return { kind: "left" };
    const key = readKey(route, request, early);
    if (key === undefined) return { kind: "pass", outcome: "missing_key" };
    const scope = await findScope(internals, route, request.carrier);
    if (scope === "run") return { kind: "pass", outcome: "missing_scope" };
    const body = early ?? (route.readsBody ? await readRequestBody(route, request) : NO_BODY);
    if (body === "aborted") return { kind: "left" };
    return { kind: "call", call: callOf(internals, route, operation, request, { key, scope, body }) };
  } catch (error) {
    if (isOncekeyError(error)) reportRefusal(internals, operation, error);
    throw error;
  }
}

const NO_BODY: RequestBody = { kind: "none" };

function callOf<C>(
  internals: Internals,
  route: Route<C>,
  operation: string,
  request: HttpRequest<C>,
  { key, scope, body }: { readonly key: string; readonly scope: ScopeValue; readonly body: RequestBody },
): Omit<Call<CapturedAnswer>, "run"> {
  const { policy } = route;
  return {
    identity: identify(internals.namespace, scope, operation, [key]),
    operation,
    label: policy.keyLabels ? key : undefined,
    fingerprint: fingerprintOf(route, request, body),
    policy,
    signal: request.left,
    waitMs: preferredWaitMs(route, request),
    commitRepeats: 0,
    encodeDone,
  };
}

function fingerprintOf<C>(route: Route<C>, request: HttpRequest<C>, body: RequestBody): Fingerprint {
  const { method, target } = request;
  return route.fingerprint({ method, target, contentType: request.lines("content-type")[0], body });
}

/** A client may ask for another wait (RFC 7240), but not for one where the route has none. */
function preferredWaitMs<C>(route: Route<C>, request: HttpRequest<C>): number | undefined {
  if (route.policy.waitMs === 0) return undefined;
  const lines = request.lines("prefer");
  const preferredMs = lines.length === 0 ? undefined : readPreferredWaitMs(lines);
  return preferredMs === undefined ? undefined : Math.min(preferredMs, route.maxWaitMs);
}

async function readRequestBody<C>(
  route: Route<C>,
  request: HttpRequest<C>,
): Promise<RequestBody | "aborted"> {
  const read = await request.body(route.maxRequestBytes);
  switch (read.kind) {
    case "aborted":
      return "aborted";
    case "too-large":
      if (route.onRequestTooLarge === "skip-body") return { kind: "skipped", length: read.length };
      throw new OncekeyError(
        "REQUEST_TOO_LARGE",
        `The request is larger than the ${route.maxRequestBytes} bytes that can be compared.`,
      );
    case "gone":
      throw new OncekeyError(
        "CONFIGURATION_INVALID",
        "Something before the idempotent middleware has read the body and not kept it. Put the middleware first, or use a parser that keeps it.",
      );
    default:
      return read;
  }
}

async function findScope<C>(internals: Internals, route: Route<C>, carrier: C): Promise<ScopeValue | "run"> {
  const scope = await scopeOrFault(internals, route, carrier);
  if (scope.kind !== "missing") return scope;
  switch (route.onMissingScope) {
    case "global":
      return GLOBAL_SCOPE;
    case "run":
      return "run";
    case "reject":
      throw new OncekeyError(
        "SCOPE_MISSING",
        "The request has an idempotency key, but its caller is not known. Authenticate first.",
      );
    default:
      return unreachable(route.onMissingScope);
  }
}

async function scopeOrFault<C>(internals: Internals, { scope }: Route<C>, carrier: C): Promise<ScopeValue> {
  if (scope === "global") return GLOBAL_SCOPE;
  try {
    if (scope === undefined) return internals.defaultScope?.() ?? MISSING_SCOPE;
    return scopeOf(await scope(carrier));
  } catch (cause) {
    throw new OncekeyError("SCOPE_FAILED", "The scope of the idempotency key could not be determined.", {
      cause,
    });
  }
}

const OUTCOME_OF: Partial<Record<OncekeyError["code"], CallOutcome>> = {
  KEY_MISSING: "missing_key",
  KEY_INVALID: "invalid_key",
  SCOPE_MISSING: "missing_scope",
};

/** What is refused before the core is asked is counted here; the core counts the rest. */
function reportRefusal(internals: Internals, operation: string, { code }: OncekeyError): void {
  internals.emit({ type: "rejected", operation, key: undefined, code });
  const outcome = OUTCOME_OF[code] ?? "rejected";
  internals.emit({ type: "finished", operation, key: undefined, outcome, tookMs: 0, waitedMs: 0 });
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

/** The one look at the final answer. */
function judge<C>(
  internals: Internals,
  route: Route<C>,
  answer: CapturedAnswer,
  before: readonly HeaderLine[],
): Ended<CapturedAnswer> {
  switch (answer.kind) {
    case "aborted":
      return { kind: "failed", value: answer, code: "ABORTED", performed: "maybe" };
    case "outgrown":
      return { kind: "failed", value: answer, code: "RESULT_TOO_LARGE", performed: "maybe" };
    case "answered": {
      const { status, headers } = answer;
      if (!isKept(internals, route, status, headers)) {
        const performed = refusedBeforeWork(status) ? "no" : "maybe";
        return { kind: "failed", value: answer, code: `HTTP_${status}`, performed };
      }
      const commit = route.commitWhen({ status }) ? "everything" : "record";
      return { kind: "kept", value: answer, outcome: outcomeOf(answer, before), commit };
    }
    default:
      return unreachable(answer);
  }
}

/** A rule that throws must not turn an answer into a fault: then the default rule decides. */
function isKept<C>(
  internals: Internals,
  { policy }: Route<C>,
  status: number,
  headers: readonly HeaderLine[],
): boolean {
  try {
    return policy.keep({ kind: "answered", status, headers });
  } catch {
    internals.emit({ type: "warning", text: "keep threw; the default rule was used" });
    return status < 500;
  }
}

function outcomeOf(
  answer: Extract<CapturedAnswer, { readonly kind: "answered" }>,
  before: readonly HeaderLine[],
): StoredOutcome {
  const { status, body } = answer;
  const snapshot = { status, headers: keepHeaders(before, answer.headers), body };
  try {
    return encodeSnapshot(body === undefined ? tombstoneOf(snapshot) : snapshot);
  } catch {
    // What cannot be stored was an answer all the same: done is done, only its look is not kept.
    return encodeSnapshot({
      status: status >= 200 && status <= 599 ? status : 200,
      headers: [],
      body: undefined,
    });
  }
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
  if (request.left?.aborted === true && !started) return;
  if (!isOncekeyError(error)) {
    if (started) answering.cut();
    throw error;
  }
  const refusal = refusalOf(route, request, error);
  if (!started) await answering.send(refusal);
  else if (!answering.replaceWith(refusal)) answering.cut();
}
