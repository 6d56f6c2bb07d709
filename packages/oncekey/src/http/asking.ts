/**
 * @module
 * Turns a request into a call of the core: its key, scope, operation and fingerprint.
 *
 * Invariants: what is malformed, nobody's or too large is refused here and never reaches the store; the fingerprint is
 * taken before the handler can change its input.
 */
import { type Awaitable, promised, started, whenDone } from "../core/awaitable.js";
import type { Call } from "../core/call.js";
import { isOncekeyError, OncekeyError, unreachable } from "../core/errors.js";
import type { CallOutcome } from "../core/events.js";
import { type Fingerprint, NO_FINGERPRINT } from "../core/fingerprint.js";
import type { Internals } from "../core/idempotency.js";
import { GLOBAL_SCOPE, identify, MISSING_SCOPE, type ScopeValue, saysGlobal, scopeOf } from "../core/key.js";
import { reportRefused } from "../core/outcome.js";
import type { CapturedAnswer } from "./answer.js";
import { encodeDone } from "./done.js";
import { readKey } from "./key-source.js";
import type { Route } from "./options.js";
import type { BodyReading, HttpRequest } from "./port.js";
import { readPreferredWaitMs } from "./prefer.js";
import type { RequestBody } from "./request-body.js";

export type Asked =
  | { readonly kind: "call"; readonly call: Call<CapturedAnswer> }
  | { readonly kind: "pass"; readonly outcome: CallOutcome }
  /** The client left while it was sending. */
  | { readonly kind: "left" };

/** What a request says, read before its framework could alter it. */
export type ReadAhead =
  /** Without a key there was nothing else to read. */
  | { readonly kind: "read"; readonly key: string | undefined; readonly fingerprint: Fingerprint | undefined }
  | { readonly kind: "left" }
  /** Thrown when its turn comes. */
  | { readonly kind: "refused"; readonly error: unknown };

const LEFT = { kind: "left" } as const;

/** What is to be turned into a call. */
export interface Inquiry<C> extends Pick<Call<CapturedAnswer>, "operation" | "run"> {
  readonly internals: Internals;
  readonly route: Route<C>;
  readonly request: HttpRequest<C>;
  readonly ahead: ReadAhead | undefined;
}

/** Turns a request into a call of the core, or says why there is none. What is wrong with it comes as a rejection. */
export function ask<C>(inquiry: Inquiry<C>): Awaitable<Asked> {
  return whenDone(
    started(() => understand(inquiry)),
    (asked) => asked,
    (error) => {
      // What is refused before the core is asked is counted here; the core counts the rest.
      if (isOncekeyError(error)) reportRefused(inquiry.internals.emit, inquiry.operation, error);
      throw error;
    },
  );
}

function understand<C>(inquiry: Inquiry<C>): Awaitable<Asked> {
  const { ahead } = inquiry;
  if (ahead === undefined) return readInTurn(inquiry);
  switch (ahead.kind) {
    case "refused":
      throw ahead.error;
    case "left":
      return LEFT;
    case "read":
      return withKey(inquiry, ahead.key, () => ahead.fingerprint ?? NO_FINGERPRINT);
    default:
      return unreachable(ahead);
  }
}

/** A key in the body needs the body first; any other is judged before a byte of it is read. */
async function readInTurn<C>(inquiry: Inquiry<C>): Promise<Asked> {
  const { route, request } = inquiry;
  const early = route.keyInBody ? await readRequestBody(route, request) : undefined;
  if (early === "aborted") return LEFT;
  const key = readKey(route, request, early);
  return withKey(inquiry, key, () => takeFingerprint(route, request, early));
}

function withKey<C>(
  inquiry: Inquiry<C>,
  key: string | undefined,
  fingerprint: () => Awaitable<Fingerprint | "aborted">,
): Awaitable<Asked> {
  if (key === undefined) return { kind: "pass", outcome: "missing_key" };
  return whenDone(findScope(inquiry), (scope) => {
    if (scope === "run") return { kind: "pass", outcome: "missing_scope" };
    return whenDone(fingerprint(), (taken) =>
      taken === "aborted" ? LEFT : { kind: "call", call: callOf(inquiry, key, scope, taken) },
    );
  });
}

/** Reads key and fingerprint, at once where the body is there. Never fails: what is wrong is refused in its turn. */
export function readAhead<C>(route: Route<C>, request: HttpRequest<C>): Awaitable<ReadAhead> {
  const refused = (error: unknown): ReadAhead => ({ kind: "refused", error });
  const read = (reading: BodyReading, early: string | undefined): ReadAhead => {
    const body = bodyOf(route, reading);
    if (body === "aborted") return LEFT;
    const key = early ?? readKey(route, request, body);
    return {
      kind: "read",
      key,
      fingerprint: key === undefined ? undefined : fingerprintOf(route, request, body),
    };
  };
  try {
    const early = route.keyInBody ? undefined : readKey(route, request, undefined);
    if (!route.keyInBody && early === undefined)
      return { kind: "read", key: undefined, fingerprint: undefined };
    if (!route.keyInBody && !route.readsBody) return read(NO_BODY, early);
    const reading = request.body(route.maxRequestBytes);
    if (!(reading instanceof Promise)) return read(reading, early);
    return reading.then((later) => read(later, early)).catch(refused);
  } catch (error) {
    return refused(error);
  }
}

const NO_BODY: RequestBody = { kind: "none" };

function callOf<C>(
  { internals, route, operation, request, run }: Inquiry<C>,
  key: string,
  scope: ScopeValue,
  fingerprint: Fingerprint,
): Call<CapturedAnswer> {
  const { policy } = route;
  return {
    identity: identify(internals.namespace, scope, operation, [key]),
    operation,
    label: policy.keyLabels ? key : undefined,
    fingerprint,
    policy,
    signal: request.left,
    carrier: request.carrier,
    waitMs: preferredWaitMs(route, request),
    commitRepeats: 0,
    encodeDone,
    run,
  };
}

async function takeFingerprint<C>(
  route: Route<C>,
  request: HttpRequest<C>,
  early: RequestBody | undefined,
): Promise<Fingerprint | "aborted"> {
  const body = early ?? (route.readsBody ? await readRequestBody(route, request) : NO_BODY);
  return body === "aborted" ? body : fingerprintOf(route, request, body);
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
  return bodyOf(route, await request.body(route.maxRequestBytes));
}

function bodyOf<C>(route: Route<C>, read: BodyReading): RequestBody | "aborted" {
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
        "The body was read before the protection could compare it, and not kept. Let the protection come before whatever reads the body, or let that keep it (read a clone of a Request; use a parser that keeps what it made).",
      );
    default:
      return read;
  }
}

function findScope<C>({ internals, route, request }: Inquiry<C>): Awaitable<ScopeValue | "run"> {
  if (saysGlobal(route.scope)) return GLOBAL_SCOPE;
  return whenDone(
    started(() => saidScope(internals, route, request.carrier)),
    (scope) => (scope.kind === "missing" ? withoutScope(route) : scope),
    (cause) => {
      throw scopeFailed(cause);
    },
  );
}

function saidScope<C>(internals: Internals, { scope }: Route<C>, carrier: C): Awaitable<ScopeValue> {
  if (typeof scope !== "function") return internals.defaultScope?.() ?? MISSING_SCOPE;
  return whenDone(
    started(() => promised(scope(carrier))),
    scopeOf,
  );
}

function withoutScope<C>({ onMissingScope }: Route<C>): ScopeValue | "run" {
  switch (onMissingScope) {
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
      return unreachable(onMissingScope);
  }
}

function scopeFailed(cause: unknown): OncekeyError<"SCOPE_FAILED"> {
  return new OncekeyError("SCOPE_FAILED", "The scope of the idempotency key could not be determined.", {
    cause,
  });
}
