/**
 * @module
 * The answer to a request that is refused, as its route wants it to read.
 *
 * Invariant: whatever renders it, a refusal is never a record.
 */
import type { OncekeyError } from "../core/errors.js";
import type { WholeAnswer } from "./answer.js";
import type { Route } from "./options.js";
import type { HttpRequest } from "./port.js";
import { problemOf, renderProblem } from "./problem.js";
import { exposed } from "./replay.js";
import { flawOf } from "./snapshot.js";

export async function refusalOf<C>(
  route: Route<C>,
  request: HttpRequest<C>,
  error: OncekeyError,
): Promise<WholeAnswer> {
  const { renderRefusal, problems } = route;
  if (renderRefusal !== undefined)
    return checked(await renderRefusal(problemOf(error, problems), request.carrier));
  const { status, headers, body } = renderProblem(error, problems);
  return { status, headers: [...headers, ...exposed(request)], body };
}

/** @throws TypeError in the place of a puzzle of each platform's own, of which a part may have left before it is found. */
function checked(answer: WholeAnswer): WholeAnswer {
  const { status, headers, body } = answer ?? {};
  const isAnswer =
    Array.isArray(headers) && !headers.some((line) => !Array.isArray(line)) && body instanceof Uint8Array;
  const flaw = isAnswer ? flawOf({ status, headers }) : "it is none";
  if (flaw === undefined) return answer;
  throw new TypeError(
    `renderRefusal must return an answer { status, headers: [[name, value]], body: bytes }: ${flaw}`,
  );
}
