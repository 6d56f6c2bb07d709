/**
 * @module
 * What a route may choose beside the policy: where its keys come from, whose they are, what counts as the
 * same request, how refusals read.
 *
 * Invariant: a route is checked whole when it is made, together with the policy it inherits; all mistakes at once.
 */
import { configurationError } from "../core/errors.js";
import type { Idempotency } from "../core/idempotency.js";
import type { GlobalScope, KeyInput, Missing } from "../core/key.js";
import type { Policy, ResolvedPolicy } from "../core/policy.js";
import { collectProblems, unknownOptions } from "../core/policy-checks.js";
import type { WholeAnswer } from "./answer.js";
import { createFingerprinter, type Fingerprinter, type FingerprintSetting } from "./fingerprint.js";
import { argumentProblems, routeProblems } from "./option-checks.js";
import type { Problem, ProblemOptions } from "./problem.js";
import type { Snapshot } from "./snapshot.js";

/** Whose key it is: a function of what was authenticated, or what opts out in plain sight: the word, or `GLOBAL_SCOPE`. */
export type Scope<C> =
  | "global"
  | GlobalScope
  | ((carrier: C) => KeyInput | Missing | Promise<KeyInput | Missing>);

/** Where a key is looked for. A body member is named by a JSON Pointer. */
export type KeySource<C> =
  | { readonly header: string }
  | { readonly query: string }
  | { readonly body: string }
  | ((carrier: C) => string | number | Missing);

/** Every member may be left out or `undefined`: then the instance, and after it the built-in default decides. */
export interface HttpOptions<C> extends Policy, ProblemOptions {
  readonly scope?: Scope<C> | undefined;
  /** When `scope` finds no caller. @defaultValue `"reject"`: 401 */
  readonly onMissingScope?: "reject" | "run" | "global" | undefined;
  /** Names the operation, so that a route can move and keep its records. @defaultValue method and route pattern */
  readonly operation?: string | undefined;
  /** Looked through in order; the first that has a key counts. @defaultValue the header `Idempotency-Key` */
  readonly key?: KeySource<C> | readonly KeySource<C>[] | undefined;
  /** @defaultValue `"reject"`: 400 */
  readonly onMissingKey?: "reject" | "run" | undefined;
  /** Other methods pass through untouched. @defaultValue POST, PUT, PATCH, DELETE */
  readonly methods?: readonly string[] | undefined;
  /** What makes two requests the same. @defaultValue `"request"` */
  readonly fingerprint?: FingerprintSetting | undefined;
  /** Characters. @defaultValue 255 */
  readonly maxKeyLength?: number | undefined;
  /** What is read into memory to be fingerprinted. @defaultValue 1 MiB */
  readonly maxRequestBytes?: number | undefined;
  /** A larger request is refused with 413, or compared without its body. @defaultValue `"refuse"` */
  readonly onRequestTooLarge?: "refuse" | "skip-body" | undefined;
  /** How long an answer may go on after its client has left. @defaultValue 30 000 */
  readonly drainMs?: number | undefined;
  /** The longest wait that a client gets with `Prefer: wait`. @defaultValue 30 000 */
  readonly maxWaitMs?: number | undefined;
  /** What a repeat gets when the body was not kept: the status alone, a refusal, or an answer made anew. @defaultValue `"status"` */
  readonly onTombstone?:
    | "status"
    | "refuse"
    | ((tombstone: Snapshot) => WholeAnswer | Promise<WholeAnswer>)
    | undefined;
  /** Under exactly-once: whether the rows of the work are committed with this answer. @defaultValue status < 400 */
  readonly commitWhen?: ((answer: { readonly status: number }) => boolean) | undefined;
  /** Makes the answer of a refusal in place of a problem document. */
  readonly renderRefusal?: ((problem: Problem, carrier: C) => WholeAnswer | Promise<WholeAnswer>) | undefined;
}

export interface ScopedHttpOptions<C> extends HttpOptions<C> {
  readonly scope: Scope<C>;
}

/** Options may be left out only where the instance has a scope. */
export type HttpArguments<I extends Idempotency, C> = I extends { readonly scoped: true }
  ? [options?: HttpOptions<C>]
  : [options: ScopedHttpOptions<C>];

/** A route, checked and complete. */
export interface Route<C> {
  readonly policy: ResolvedPolicy;
  readonly scope: Scope<C> | undefined;
  readonly onMissingScope: "reject" | "run" | "global";
  readonly operation: string | undefined;
  readonly keys: readonly KeySource<C>[];
  readonly keyInBody: boolean;
  readonly onMissingKey: "reject" | "run";
  readonly methods: ReadonlySet<string>;
  readonly fingerprint: Fingerprinter;
  readonly readsBody: boolean;
  readonly maxKeyLength: number;
  readonly maxRequestBytes: number;
  readonly onRequestTooLarge: "refuse" | "skip-body";
  readonly drainMs: number;
  readonly maxWaitMs: number;
  readonly onTombstone: NonNullable<HttpOptions<C>["onTombstone"]>;
  readonly commitWhen: (answer: { readonly status: number }) => boolean;
  readonly problems: ProblemOptions;
  readonly renderRefusal: HttpOptions<C>["renderRefusal"];
}

const METHODS = ["POST", "PUT", "PATCH", "DELETE"];
const DEFAULT_DRAIN_MS = 30_000;

/** The default rule: an answer that says that the work was not done takes its rows back. */
export function commitsStatus(status: number): boolean {
  return status < 400;
}

/** Every option that is not policy; what else is given is a misspelling. */
const NAMES = [
  "scope",
  "onMissingScope",
  "operation",
  "key",
  "onMissingKey",
  "methods",
  "fingerprint",
  "maxKeyLength",
  "maxRequestBytes",
  "onRequestTooLarge",
  "drainMs",
  "maxWaitMs",
  "onTombstone",
  "commitWhen",
  "messages",
  "docs",
  "challenge",
  "renderRefusal",
] as const satisfies readonly Exclude<keyof HttpOptions<unknown>, keyof Policy>[];

/** @throws OncekeyError `CONFIGURATION_INVALID` with everything that is wrong with the route. */
export function resolveRoute<C>(idempotency: Idempotency, options: HttpOptions<C>): Route<C> {
  const unusable = argumentProblems(idempotency, options);
  if (unusable.length > 0) throw configurationError("Route", unusable);
  const problems: string[] = [];
  const given = policyOf(options);
  const policy = collectProblems(problems, () => idempotency.internals.policyFor(given));
  const fingerprint = collectProblems(problems, () => createFingerprinter(options.fingerprint));
  const scoped = idempotency.internals.defaultScope !== undefined;
  problems.push(...unknownOptions(given), ...routeProblems(options, policy?.guarantee, scoped));
  if (problems.length > 0 || policy === undefined || fingerprint === undefined) {
    throw configurationError("Route", problems);
  }
  return complete(idempotency, options, policy, fingerprint);
}

/** What is left without the options of HTTP: policy, and whatever was misspelt. */
function policyOf<C>(options: HttpOptions<C>): Policy {
  const policy: Record<string, unknown> = { ...options };
  for (const name of NAMES) delete policy[name];
  return policy;
}

function complete<C>(
  idempotency: Idempotency,
  options: HttpOptions<C>,
  policy: ResolvedPolicy,
  fingerprint: Fingerprinter,
): Route<C> {
  const keys = sourcesOf(options.key);
  const { limits } = idempotency.internals;
  return {
    policy,
    fingerprint,
    keys,
    scope: options.scope,
    onMissingScope: options.onMissingScope ?? "reject",
    operation: options.operation,
    keyInBody: keys.some((source) => typeof source === "object" && "body" in source),
    onMissingKey: options.onMissingKey ?? "reject",
    methods: new Set((options.methods ?? METHODS).map((method) => method.toUpperCase())),
    readsBody: options.fingerprint !== "off",
    maxKeyLength: options.maxKeyLength ?? limits.maxKeyLength,
    maxRequestBytes: options.maxRequestBytes ?? limits.maxRequestBytes,
    onRequestTooLarge: options.onRequestTooLarge ?? "refuse",
    drainMs: options.drainMs ?? DEFAULT_DRAIN_MS,
    maxWaitMs: options.maxWaitMs ?? limits.maxWaitMs,
    onTombstone: options.onTombstone ?? "status",
    commitWhen: options.commitWhen ?? (({ status }) => commitsStatus(status)),
    problems: { messages: options.messages, docs: options.docs, challenge: options.challenge },
    renderRefusal: options.renderRefusal,
  };
}

function sourcesOf<C>(key: HttpOptions<C>["key"]): readonly KeySource<C>[] {
  if (key === undefined) return [{ header: "Idempotency-Key" }];
  return Array.isArray(key) ? (key as readonly KeySource<C>[]) : [key as KeySource<C>];
}
