/**
 * @module
 * Renders a refusal as a problem document (RFC 9457): `application/problem+json` with a stable `type` and
 * `code`, a numeric `businessCode`, and whether trying again can help.
 *
 * Invariant: the code decides the status, the numbers and the headers; options change only what people read.
 * No key and no body is ever in it, and nobody stores it: a refusal is `no-store`, never a record. Which
 * refusal it is was decided by the core.
 */
import { CODES, docsOf, type ErrorCode, type OncekeyError } from "../core/errors.js";
import { isOptions } from "../core/policy-checks.js";
import type { HeaderLine, WholeAnswer } from "./answer.js";

/** Texts for people, in any language. */
export interface ProblemText {
  readonly title?: string | undefined;
  readonly detail?: string | undefined;
}

/** Texts by code; a plain string is the detail. What is not given stays English. */
export type Messages = { readonly [Code in ErrorCode]?: string | ProblemText | undefined };

export interface ProblemOptions {
  readonly messages?: Messages | undefined;
  /**
   * Where this service documents how it treats idempotency keys, which the draft asks refusals to link to
   * (draft-ietf-httpapi-idempotency-key-header-07 §2.7).
   *
   * @defaultValue the page of the code in this library's documentation
   */
  readonly docs?: string | undefined;
  /**
   * `WWW-Authenticate` of a 401, which may not go without one (RFC 9110 §15.5.2).
   *
   * @defaultValue `"Bearer"`
   */
  readonly challenge?: string | undefined;
}

/** The members of the document, in the order they are written. */
export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly code: ErrorCode;
  readonly businessCode: number;
  readonly retryable: boolean;
  /** The work is done: a client must not do it again under another key. */
  readonly completed?: true;
}

/** The document of a refusal, for whoever renders it otherwise. */
export function problemOf(error: OncekeyError, options: ProblemOptions): Problem {
  const given = options.messages?.[error.code];
  const text: ProblemText = typeof given === "string" ? { detail: given } : (given ?? {});
  return {
    type: docsOf(error.code),
    // Another version of this package may have thrown a code that is not known here.
    title: text.title ?? CODES[error.code]?.title ?? error.code,
    status: error.status,
    detail: text.detail ?? error.message,
    code: error.code,
    businessCode: error.businessCode,
    retryable: error.retryable,
    ...(error.completed && { completed: true }),
  };
}

const encoder = new TextEncoder();

/** The whole answer to a request that is refused, without `Content-Length`, which whoever sends it knows. */
export function renderProblem(error: OncekeyError, options: ProblemOptions): WholeAnswer {
  const problem = problemOf(error, options);
  const headers: HeaderLine[] = [
    ["Content-Type", "application/problem+json"],
    ["Cache-Control", "no-store"],
    ["Link", `<${options.docs ?? problem.type}>; rel="describedby"; type="text/html"`],
  ];
  if (error.retryable) headers.push(["Retry-After", retryAfter(error.retryAfterMs)]);
  if (error.status === 401) headers.push(["WWW-Authenticate", options.challenge ?? "Bearer"]);
  return { status: error.status, headers, body: encoder.encode(JSON.stringify(problem)) };
}

/** In whole seconds, rounded up: a client that comes too early is refused again. */
function retryAfter(retryAfterMs = 0): string {
  return `${Math.max(1, Math.ceil(retryAfterMs / 1_000))}`;
}

/** What is wrong with the options, each with its place: for the one list a configuration error shows. */
export function problemOptionProblems({ messages, docs, challenge }: ProblemOptions): string[] {
  const problems = messages === undefined ? [] : messageProblems(messages);
  // Both go into a header: visible ASCII, and no bracket that would end the link.
  if (docs !== undefined && !(typeof docs === "string" && /^[!-;=?-~]+$/.test(docs))) {
    problems.push("docs must be a URL in ASCII, without spaces and angle brackets");
  }
  if (
    challenge !== undefined &&
    !(typeof challenge === "string" && /^[!-~](?:[ -~]*[!-~])?$/.test(challenge))
  ) {
    problems.push('challenge must be the value of a WWW-Authenticate header, such as "Bearer"');
  }
  return problems;
}

function messageProblems(messages: unknown): string[] {
  if (!isOptions(messages)) return ["messages must be an object of texts by code"];
  return Object.entries(messages).flatMap(([code, text]) => {
    if (!Object.hasOwn(CODES, code)) {
      return `messages names a code that does not exist, ${code}; the codes are ${Object.keys(CODES).join(", ")}`;
    }
    return isMessage(text) ? [] : `messages.${code} must be a text or { title, detail }`;
  });
}

function isMessage(text: unknown): boolean {
  if (text === undefined || typeof text === "string") return true;
  if (!isOptions(text)) return false;
  return Object.entries(text).every(
    ([name, part]) =>
      (name === "title" || name === "detail") && (part === undefined || typeof part === "string"),
  );
}
