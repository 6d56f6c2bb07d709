/**
 * @module
 * Turns a request into a call of the core: its key, scope, operation and fingerprint.
 *
 * Invariants: what is malformed, nobody's or too large is refused here and never reaches the store; the fingerprint is
 * taken before the handler can change its input.
 */
import type { Call } from "../core/call.js";
import { isOncekeyError, OncekeyError, unreachable } from "../core/errors.js";
import type { CallOutcome } from "../core/events.js";
import type { Fingerprint } from "../core/fingerprint.js";
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

/** Turns a request into a call of the core, or says why there is none. */
export async function ask<C>(
  internals: Internals,
  route: Route<C>,
  operation: string,
  {
    request,
    ahead,
    run,
  }: Pick<Call<CapturedAnswer>, "run"> & {
    readonly request: HttpRequest<C>;
    readonly ahead: ReadAhead | undefined;
  },
): Promise<Asked> {
  try {
    if (ahead?.kind === "refused") throw ahead.error;
    if (ahead?.kind === "left") return LEFT;
    // A key in the body needs the body first; any other is judged before a byte of it is read.
    const early = ahead === undefined && route.keyInBody ? await readRequestBody(route, request) : undefined;
    if (early === "aborted") return LEFT;
    const key = ahead === undefined ? readKey(route, request, early) : ahead.key;
    if (key === undefined) return { kind: "pass", outcome: "missing_key" };
    const scope = await findScope(internals, route, request.carrier);
    if (scope === "run") return { kind: "pass", outcome: "missing_scope" };
    const fingerprint = ahead?.fingerprint ?? (await takeFingerprint(route, request, early));
    if (fingerprint === "aborted") return LEFT;
    return {
      kind: "call",
      call: callOf(internals, route, operation, request, { key, scope, fingerprint, run }),
    };
  } catch (error) {
    // What is refused before the core is asked is counted here; the core counts the rest.
    if (isOncekeyError(error)) reportRefused(internals.emit, operation, error);
    throw error;
  }
}

/** Reads key and fingerprint, at once where the body is there. Never fails: what is wrong is refused in its turn. */
export function readAhead<C>(route: Route<C>, request: HttpRequest<C>): ReadAhead | Promise<ReadAhead> {
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
  internals: Internals,
  route: Route<C>,
  operation: string,
  request: HttpRequest<C>,
  {
    key,
    scope,
    fingerprint,
    run,
  }: Pick<Call<CapturedAnswer>, "fingerprint" | "run"> & { readonly key: string; readonly scope: ScopeValue },
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
  if (saysGlobal(scope)) return GLOBAL_SCOPE;
  try {
    if (scope === undefined) return internals.defaultScope?.() ?? MISSING_SCOPE;
    return scopeOf(await scope(carrier));
  } catch (cause) {
    // biome-ignore lint/style/useErrorCause: OncekeyError takes it among its details.
    throw new OncekeyError("SCOPE_FAILED", "The scope of the idempotency key could not be determined.", {
      cause,
    });
  }
}
