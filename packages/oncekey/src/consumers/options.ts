/**
 * @module
 * What a consumer may choose beside the policy: its name, where keys come from, whose they are, what makes two messages the
 * same, how long deliveries are put back for.
 *
 * Invariant: a consumer is checked whole when it is made, together with the policy it inherits; all mistakes at once.
 */
import type { ResultCodec } from "../core/codec.js";
import { configurationError } from "../core/errors.js";
import type { Idempotency } from "../core/idempotency.js";
import { type GlobalScope, type KeyInput, type Missing, saysGlobal } from "../core/key.js";
import type { Policy, ResolvedPolicy } from "../core/policy.js";
import {
  collectProblems,
  durationProblems,
  functionProblems,
  isOptions,
  unknownOptions,
} from "../core/policy-checks.js";
import type { Guarantee } from "../core/record.js";
import type { Backoff, Verdict } from "./verdict.js";

/** Every member of the policy may be left out or `undefined`: then the instance, and after it the built-in default decides. */
export interface ConsumerOptions<M, R = unknown, G extends Guarantee = Guarantee> extends Policy {
  /**
   * Names who consumes, the same in every process and deploy: `"billing"`. A key belongs to its consumer, so that two consumers
   * of one message both run. Its operation is `consumer:` and this name.
   */
  readonly consumer: string;
  /**
   * What stays the same when the message comes again: an id that its producer gave it, or one of the business event in it. What
   * the broker numbers is not that, since a producer that sends twice is given two. Missing parts are a missing key.
   */
  readonly key: (message: M) => KeyInput | Missing;
  /** A message without a key: laid with the dead letters, or handled each time it comes, unprotected. @defaultValue `"reject"` */
  readonly onMissingKey?: "reject" | "run" | undefined;
  /** Whose key it is, where keys are unique only for a tenant, say. @defaultValue `"global"` */
  readonly scope?: "global" | GlobalScope | ((message: M) => KeyInput | Missing) | undefined;
  /** What a repeat is compared by: another message under the same key is laid with the dead letters. @defaultValue `"body"`, its bytes */
  readonly input?: "body" | "off" | ((message: M) => unknown) | undefined;
  readonly guarantee?: G | undefined;
  /** Maps results to data and back, where repeats need them: instances of classes, versions of `R`. */
  readonly result?: ResultCodec<R> | undefined;
  /**
   * How long a delivery is put back for: `firstMs`, twice as long with each delivery the broker counts, `mostMs` in the end. In
   * flight never longer than the claim in the way still holds. @defaultValue `{ firstMs: 1000, mostMs: 30000 }`
   */
  readonly backoff?:
    | { readonly firstMs?: number | undefined; readonly mostMs?: number | undefined }
    | undefined;
  /** Told of every verdict before it is carried out, with the handler's error where there is one: the place to log. */
  readonly onVerdict?: ((verdict: Verdict<R>, message: M) => void) | undefined;
}

/** What a client has no body to compare by has to say. */
export interface SaysInput<M> {
  readonly input: "off" | ((message: M) => unknown);
}

/** A consumer, checked and complete. */
export interface Consumer<M, R> {
  readonly operation: string;
  readonly policy: ResolvedPolicy;
  /** Consumers put back rather than wait, unless they say so themselves. */
  readonly waitMs: number | undefined;
  readonly key: (message: M) => KeyInput | Missing;
  readonly onMissingKey: "reject" | "run";
  readonly scope: "global" | ((message: M) => KeyInput | Missing);
  readonly input: "off" | "body" | ((message: M) => unknown);
  readonly result: ResultCodec<R> | undefined;
  readonly backoff: Backoff;
  readonly onVerdict: ((verdict: Verdict<R>, message: M) => void) | undefined;
}

const DEFAULT_BACKOFF: Backoff = { firstMs: 1_000, mostMs: 30_000 };
/** RabbitMQ takes a delivery that is held for half an hour for lost, and closes the channel. */
const MAX_BACKOFF_MS = 900_000;

const NAMES = [
  "consumer",
  "key",
  "onMissingKey",
  "scope",
  "input",
  "result",
  "backoff",
  "onVerdict",
] as const satisfies readonly Exclude<keyof ConsumerOptions<unknown>, keyof Policy>[];

/**
 * @param own options of the adapter itself, which it has checked.
 * @param hasBody whether the adapter can find the bytes of a message.
 * @throws OncekeyError `CONFIGURATION_INVALID` with everything that is wrong with the consumer.
 */
export function resolveConsumer<M, R>(
  idempotency: Idempotency,
  options: ConsumerOptions<M, R>,
  handler: unknown,
  { hasBody, own = {} }: { readonly hasBody: boolean; readonly own?: Readonly<Record<string, string[]>> },
): Consumer<M, R> {
  const unusable = argumentProblems(idempotency, options);
  if (unusable.length > 0) throw configurationError("Consumer", unusable);
  const given = policyOf(options, Object.keys(own));
  const problems = Object.values(own).flat();
  const policy = collectProblems(problems, () => idempotency.internals.policyFor(given));
  problems.push(...unknownOptions(given), ...consumerProblems(options, policy?.guarantee, hasBody));
  problems.push(...(typeof handler === "function" ? [] : ["handler, the last argument, must be a function"]));
  if (problems.length > 0 || policy === undefined) throw configurationError("Consumer", problems);
  const { scope = "global", backoff } = options;
  return {
    operation: `consumer:${options.consumer}`,
    policy,
    waitMs: options.onInFlight === undefined ? 0 : undefined,
    key: options.key,
    onMissingKey: options.onMissingKey ?? "reject",
    scope: typeof scope === "function" ? scope : "global",
    input: options.input ?? "body",
    result: options.result,
    backoff: backoffOf(backoff),
    onVerdict: options.onVerdict,
  };
}

function argumentProblems(idempotency: unknown, options: unknown): string[] {
  const problems: string[] = [];
  if (!isOptions(idempotency) || !isOptions(idempotency.internals)) {
    problems.push("idempotency, the first argument, must be what createIdempotency({ store }) gave");
  }
  if (!isOptions(options)) problems.push("options must be an object with consumer and key");
  return problems;
}

/** What is left without the options of consumers: policy, and whatever was misspelt. */
function policyOf(options: object, own: readonly string[]): Policy {
  const policy: Record<string, unknown> = { ...options };
  for (const name of [...NAMES, ...own]) delete policy[name];
  return policy;
}

/** Options as somebody without types may give them. */
type GivenOptions = { readonly [Name in keyof ConsumerOptions<never>]?: unknown };

function consumerProblems(
  options: GivenOptions,
  guarantee: Guarantee | undefined,
  hasBody: boolean,
): string[] {
  const { consumer, key, onMissingKey, scope, input, result, onVerdict } = options;
  const problems: string[] = [];
  if (typeof consumer !== "string" || consumer === "")
    problems.push("consumer must be a text that names who consumes");
  if (typeof key !== "function") problems.push("key must be a function that finds the key of a message");
  if (onMissingKey !== undefined && onMissingKey !== "reject" && onMissingKey !== "run") {
    problems.push('onMissingKey must be one of "reject", "run"');
  }
  if (onMissingKey === "run" && guarantee === "at-most-once") {
    problems.push('onMissingKey "run" contradicts guarantee "at-most-once": what has no key may start twice');
  }
  if (scope !== undefined && typeof scope !== "function" && !saysGlobal(scope)) {
    problems.push('scope must be "global" or a function that finds whose key it is');
  }
  return [
    ...problems,
    ...inputProblems(input, hasBody),
    ...functionProblems("onVerdict", onVerdict),
    ...codecProblems(result),
    ...backoffProblems(options.backoff),
  ];
}

function inputProblems(input: unknown, hasBody: boolean): string[] {
  if (typeof input === "function" || input === "off") return [];
  if (hasBody && (input === undefined || input === "body")) return [];
  const choices = hasBody ? '"body", "off" or a function' : '"off" or a function';
  return [`input must be ${choices} that says what repeats are compared by`];
}

function codecProblems(result: unknown): string[] {
  if (result === undefined) return [];
  const codec = result as { readonly encode?: unknown; readonly decode?: unknown } | null;
  const fits = typeof codec?.encode === "function" && typeof codec.decode === "function";
  return fits ? [] : ["result must have the functions encode and decode"];
}

function backoffProblems(backoff: unknown): string[] {
  if (backoff === undefined) return [];
  if (!isOptions(backoff)) return ["backoff must be { firstMs, mostMs }"];
  const problems = unknownOptions(backoff, new Set(["firstMs", "mostMs"])).map(
    (problem) => `backoff.${problem}`,
  );
  const { firstMs, mostMs } = backoffOf(backoff);
  problems.push(...durationProblems("backoff.mostMs", mostMs, 1, MAX_BACKOFF_MS));
  return problems.length > 0 ? problems : durationProblems("backoff.firstMs", firstMs, 1, mostMs);
}

function backoffOf({
  firstMs,
  mostMs = Math.max(DEFAULT_BACKOFF.mostMs, firstMs ?? 0),
}: NonNullable<ConsumerOptions<never>["backoff"]> = {}): Backoff {
  return { firstMs: firstMs ?? Math.min(DEFAULT_BACKOFF.firstMs, mostMs), mostMs };
}
