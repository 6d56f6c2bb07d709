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

export async function refusalOf<C>(
  route: Route<C>,
  request: HttpRequest<C>,
  error: OncekeyError,
): Promise<WholeAnswer> {
  const { renderRefusal, problems } = route;
  if (renderRefusal !== undefined) return renderRefusal(problemOf(error, problems), request.carrier);
  const { status, headers, body } = renderProblem(error, problems);
  return { status, headers: [...headers, ...exposed(request)], body };
}
