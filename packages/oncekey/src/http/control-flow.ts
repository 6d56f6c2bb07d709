/**
 * @module
 * Answers that a handler throws: a `Response`, or an object by which Next.js tells itself to redirect or not to find.
 *
 * Invariant: what is not known for certain to become an answer is an error. Who makes the answer of it is left to
 * the framework around the handler.
 */
import type { WholeAnswer } from "./answer.js";

/** Frameworks replace the global class and wrap instances, but the tag stays. */
export function isResponse(thrown: unknown): thrown is Response {
  return Object.prototype.toString.call(thrown) === "[object Response]";
}

/**
 * The answer that Next.js makes of what `redirect()` and `notFound()` throw in a route handler.
 *
 * @see https://github.com/vercel/next.js/blob/canary/packages/next/src/client/components/redirect-error.ts
 */
export function nextAnswerOf(thrown: unknown): WholeAnswer | undefined {
  const digest = digestOf(thrown);
  if (digest === undefined) return undefined;
  const [name, ...rest] = digest.split(";");
  switch (name) {
    case "NEXT_REDIRECT": {
      // NEXT_REDIRECT;replace;/thanks;307; and the place may have semicolons of its own.
      const location = rest.slice(1, -2).join(";");
      return answer(Number(rest.at(-2)), [["Location", location]]);
    }
    case "NEXT_HTTP_ERROR_FALLBACK":
      return answer(Number(rest[0]), []);
    case "NEXT_NOT_FOUND":
      return answer(404, []);
    default:
      return undefined;
  }
}

function digestOf(thrown: unknown): string | undefined {
  if (typeof thrown !== "object" || thrown === null || !("digest" in thrown)) return undefined;
  return typeof thrown.digest === "string" ? thrown.digest : undefined;
}

function answer(status: number, headers: WholeAnswer["headers"]): WholeAnswer | undefined {
  if (!(status >= 300 && status <= 599)) return undefined;
  return { status, headers, body: new Uint8Array(0) };
}
