/**
 * @module
 * Every refusal and every fault has a code here, with its HTTP status, its numeric business code and whether
 * trying again can help.
 *
 * Invariant: a message says what happened, what was expected and what to do, and never holds a key or a body.
 * Errors are told apart by `code` and recognised by a registered symbol, so two copies of this package
 * (ESM and CJS, two versions) understand each other's. Rendering them is left to `http/problem.ts`.
 */

interface CodeFacts {
  readonly status: number;
  readonly businessCode: number;
  readonly retryable: boolean;
  readonly title: string;
}

/** Every code, with what it means to a client and to a program. */
export const CODES = {
  KEY_MISSING: { status: 400, businessCode: 40010, retryable: false, title: "Idempotency key is missing" },
  KEY_INVALID: { status: 400, businessCode: 40010, retryable: false, title: "Idempotency key is not valid" },
  SCOPE_MISSING: { status: 401, businessCode: 40110, retryable: false, title: "Caller is not known" },
  ALREADY_COMPLETED: {
    status: 409,
    businessCode: 40910,
    retryable: false,
    title: "Operation is already completed",
  },
  IN_FLIGHT: { status: 409, businessCode: 40911, retryable: true, title: "Operation is still in flight" },
  OUTCOME_UNKNOWN: {
    status: 409,
    businessCode: 40912,
    retryable: false,
    title: "Outcome of the operation is unknown",
  },
  ATTEMPTS_EXHAUSTED: { status: 409, businessCode: 40913, retryable: false, title: "Attempts are exhausted" },
  RESULT_NOT_RETAINED: {
    status: 409,
    businessCode: 40914,
    retryable: false,
    title: "Operation is completed, its result was not retained",
  },
  CLAIM_LIVE: { status: 409, businessCode: 40915, retryable: true, title: "Claim is live" },
  REQUEST_TOO_LARGE: {
    status: 413,
    businessCode: 41310,
    retryable: false,
    title: "Request is too large to be fingerprinted",
  },
  KEY_REUSED: {
    status: 422,
    businessCode: 42210,
    retryable: false,
    title: "Idempotency key was used for another request",
  },
  RESULT_TOO_LARGE: {
    status: 500,
    businessCode: 50010,
    retryable: false,
    title: "Result is too large to be committed",
  },
  RECORD_UNREADABLE: {
    status: 500,
    businessCode: 50011,
    retryable: false,
    title: "Stored record cannot be read",
  },
  SCOPE_FAILED: {
    status: 500,
    businessCode: 50012,
    retryable: false,
    title: "Scope could not be determined",
  },
  STORE_UNAVAILABLE: {
    status: 503,
    businessCode: 50310,
    retryable: true,
    title: "Idempotency store is unavailable",
  },
  CAPACITY_EXCEEDED: {
    status: 503,
    businessCode: 50311,
    retryable: true,
    title: "Idempotency store is full",
  },
  ATTEMPT_FAILED: {
    status: 503,
    businessCode: 50312,
    retryable: true,
    title: "The attempt that was waited for failed",
  },
  NOT_COMMITTED: { status: 503, businessCode: 50313, retryable: true, title: "Nothing was committed" },
  CLOSING: { status: 503, businessCode: 50314, retryable: true, title: "Service is shutting down" },
  COMMIT_UNDECIDED: {
    status: 503,
    businessCode: 50315,
    retryable: true,
    title: "Outcome of the commit is not known yet",
  },
  LEASE_LOST: { status: 500, businessCode: 50020, retryable: true, title: "Claim is lost" },
  RUN_TOO_LONG: { status: 500, businessCode: 50021, retryable: true, title: "Work ran too long" },
  KEY_REENTERED: { status: 500, businessCode: 50022, retryable: false, title: "Key is used inside itself" },
  GUARANTEE_UNSUPPORTED: {
    status: 500,
    businessCode: 50023,
    retryable: false,
    title: "Store cannot give the guarantee",
  },
  RETRY_TRANSACTION: {
    status: 500,
    businessCode: 50024,
    retryable: true,
    title: "Transaction has to be repeated",
  },
  TRANSACTION_ABORTED: {
    status: 500,
    businessCode: 50025,
    retryable: true,
    title: "Transaction was aborted by the database",
  },
  TRANSACTION_CLOSED: { status: 500, businessCode: 50026, retryable: false, title: "Transaction has ended" },
  INPUT_UNSUPPORTED: {
    status: 500,
    businessCode: 50028,
    retryable: false,
    title: "Input cannot be fingerprinted",
  },
  NOT_PROTECTED: { status: 500, businessCode: 50029, retryable: false, title: "Not inside protected work" },
  NOT_PERFORMED: { status: 500, businessCode: 50030, retryable: true, title: "Work was not performed" },
  STEP_IN_FLIGHT: {
    status: 503,
    businessCode: 50316,
    retryable: true,
    title: "An earlier attempt is still in this step",
  },
  STEP_REFUSED: { status: 500, businessCode: 50031, retryable: false, title: "Step cannot be done again" },
  RECORD_CHANGED: {
    status: 409,
    businessCode: 40916,
    retryable: true,
    title: "Record has changed since it was looked at",
  },
  CONFIGURATION_INVALID: {
    status: 500,
    businessCode: 50001,
    retryable: false,
    title: "Configuration is not valid",
  },
} as const satisfies Record<string, CodeFacts>;

/** Stable names: switch on these. Each has a page, see `docsOf`. */
export type ErrorCode = keyof typeof CODES;

/** What a code may carry beside itself. */
export interface ErrorDetails {
  /** When trying again makes sense; rendered as `Retry-After`. */
  readonly retryAfterMs?: number | undefined;
  /** How long the claim that is in the way still holds if it is not renewed. */
  readonly remainingMs?: number | undefined;
  /** The work is done although this is an error: do not do it again by another way. */
  readonly completed?: boolean | undefined;
  /** Everything that is wrong with a configuration, each with its place. */
  readonly problems?: readonly string[] | undefined;
  readonly cause?: unknown;
}

const MARK = Symbol.for("oncekey.error");
const DOCS = "https://oncekey.dev/errors/";

/** Any error that this package throws on purpose. Switch on `code`, never on the message. */
export class OncekeyError<C extends ErrorCode = ErrorCode> extends Error {
  readonly code: C;
  readonly status: number;
  readonly businessCode: number;
  readonly retryable: boolean;
  readonly retryAfterMs: number | undefined;
  readonly remainingMs: number | undefined;
  readonly completed: boolean;
  readonly problems: readonly string[];

  constructor(code: C, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    const facts: CodeFacts = CODES[code];
    this.name = "OncekeyError";
    this.code = code;
    this.status = facts.status;
    this.businessCode = facts.businessCode;
    this.retryable = facts.retryable;
    this.retryAfterMs = details.retryAfterMs;
    this.remainingMs = details.remainingMs;
    this.completed = details.completed ?? false;
    this.problems = details.problems ?? [];
    Object.defineProperty(this, MARK, { value: true });
  }
}

/** A stored failure given back to a repeat: the name, message and code of what the work threw. */
export class ReplayedError extends Error {
  readonly code: string | undefined;
  readonly replayed = true;

  constructor(name: string, message: string, code: string | undefined) {
    super(message);
    this.name = name;
    this.code = code;
  }
}

/**
 * Whether `error` is one of ours, made by any copy of this package; with `code`, whether it is that one.
 */
export function isOncekeyError<C extends ErrorCode = ErrorCode>(
  error: unknown,
  code?: C,
): error is OncekeyError<C> {
  if (typeof error !== "object" || error === null || !(MARK in error)) return false;
  return code === undefined || (error as { readonly code?: unknown }).code === code;
}

/**
 * Says from inside the work that nothing happened, so that the key may be used again even under at-most-once.
 *
 * @example throw notPerformed("card network refused the connection", error)
 */
export function notPerformed(reason: string, cause?: unknown): OncekeyError<"NOT_PERFORMED"> {
  return new OncekeyError("NOT_PERFORMED", reason, { cause });
}

/** Where a code is explained. */
export function docsOf(code: ErrorCode): string {
  return `${DOCS}${code.toLowerCase().replaceAll("_", "-")}`;
}

/** All problems of a configuration at once, so that it is mended in one go. */
export function configurationError(
  what: string,
  problems: readonly string[],
): OncekeyError<"CONFIGURATION_INVALID"> {
  const list = problems.map((problem) => `\n  - ${problem}`).join("");
  return new OncekeyError("CONFIGURATION_INVALID", `${what} is not valid:${list}`, { problems });
}

/** Ends an exhaustive `switch`: does not compile while a case is missing. */
export function unreachable(value: never): never {
  throw new Error(`Unreachable: ${JSON.stringify(value)}`);
}
