/**
 * @module
 * The text that names an operation where the route does not: its pattern without the names of parameters, or
 * the path as sent.
 *
 * Invariant: two patterns give one text only if they differ in nothing but the names of parameters. What only
 * looks like a name (escaped characters, regular expressions) stays, since one operation must never answer for another.
 */
import type { HttpRequest } from "./port.js";

/**
 * A parameter (`:id`), or a wildcard with a name (`/*path`). An escape is matched first, and so is kept whole: `\:` in
 * Express, `::` in Fastify; so is the beginning of a group that captures nothing. A star behind text is a wildcard followed
 * by text in Express 4 (`/files*copy`), so what comes after it is no name. The regular expression behind a name
 * (`:id(\d+)`) is kept whole, colons included.
 */
const NAMED = /\\.|::|\(\?:|(:|(?<=\/)\*)[A-Za-z_$][\w$]*(\((?:\\.|[^\\()]|\((?:\\.|[^\\()])*\))*\))?/gs;

/** `/orders/:id` and `/orders/:orderId` are one operation: renaming a parameter runs nothing again. */
export function shapeOf({ route, target }: Pick<HttpRequest<unknown>, "route" | "target">): string {
  if (route === undefined) return pathOf(target);
  return route.replace(NAMED, (matched, sign: string | undefined, rule = "") =>
    sign === undefined ? matched : sign + rule,
  );
}

/** Escapes what `shapeOf` would take for a name, in a part of a pattern that has none. Different texts stay different. */
export function withoutNames(text: string): string {
  return text.replace(/[\\:*]/g, "\\$&");
}

/** A client may send the whole URL (RFC 9112 §3.2.2), which names the same resource. */
function pathOf(target: string): string {
  const local = target.startsWith("/") ? target : target.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, "");
  const end = local.search(/[?#]/);
  return (end === -1 ? local : local.slice(0, end)) || "/";
}

/** Patterns belong to the application, so there are few; but a framework may make one of each path. */
const MAX_KNOWN = 1_000;

/**
 * Names the operation of a request: as the route says, or by method and pattern. That is worked out once for each, so that
 * records in this process share the text.
 */
export function operationsOf({
  operation,
}: {
  readonly operation: string | undefined;
}): (request: Pick<HttpRequest<unknown>, "method" | "route" | "target">) => string {
  const known = new Map<string, string>();
  return (request) => {
    if (operation !== undefined) return operation;
    const { method, route } = request;
    if (route === undefined) return `${method} ${shapeOf(request)}`;
    const spelled = `${method} ${route}`;
    let name = known.get(spelled);
    if (name === undefined) {
      name = `${method} ${shapeOf(request)}`;
      if (known.size >= MAX_KNOWN) known.clear();
      known.set(spelled, name);
    }
    return name;
  };
}
