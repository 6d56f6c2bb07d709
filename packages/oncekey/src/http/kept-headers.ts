/**
 * @module
 * Which headers of a response belong to the answer, and so to its replay.
 *
 * Invariant: kept is what the protected work (or what renders its result) said, not what the layers around it
 * say to every response. Headers that were there before and have not changed are theirs; so are the ones
 * named below, wherever they were set. On a replay those layers speak again, of today's request.
 */
import type { HeaderList } from "./snapshot.js";

/** In lower case. */
const NEVER_KEPT: ReadonlySet<string> = new Set([
  // Of one connection (RFC 9110 §7.6.1) or of one message's framing (§8.6, RFC 9112 §6).
  ...["connection", "proxy-connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"],
  ...["proxy-authenticate", "proxy-authentication-info", "content-length"],
  // Of one moment, or of the way the message took.
  ...["date", "age", "via", "server-timing"],
  // Of one client: a replay must not hand out the session that the first request got.
  ...["set-cookie", "set-cookie2"],
  // Of one request, for whoever looks it up in logs and traces.
  ...["x-request-id", "request-id", "x-correlation-id", "correlation-id", "x-amzn-requestid", "x-trace-id"],
  ...["traceparent", "tracestate", "traceresponse", "b3", "x-amzn-trace-id", "x-cloud-trace-context"],
  // Of the site's policy today.
  ...["strict-transport-security", "content-security-policy", "content-security-policy-report-only"],
  // Ours: a replay sets its own.
  ...["idempotency-replayed", "idempotency-body", "idempotency-degraded"],
]);
/** `Access-Control-*` speaks of one origin, rate limits of one moment, `X-B3-*` of one trace. */
const NEVER_KEPT_PREFIX = /^(?:access-control-|ratelimit|x-ratelimit|x-rate-limit|x-b3-)/;

/**
 * The headers of `leaving` that are part of the answer, in their order and spelling.
 *
 * @param entering what stood on the response when our layer was entered.
 * @param leaving what stands on it when the answer is final. A name whose lines are all the same as before
 * is not ours; one that gained or changed a line is kept with all its lines.
 */
export function keepHeaders(entering: HeaderList, leaving: HeaderList): HeaderList {
  const before = entering.length === 0 ? NO_LINES : linesByName(entering);
  const after = before.size === 0 ? NO_LINES : linesByName(leaving);
  const connection = namedInConnection(leaving);
  return leaving.filter(([spelled]) => {
    const name = spelled.toLowerCase();
    if (NEVER_KEPT.has(name) || NEVER_KEPT_PREFIX.test(name) || connection.has(name)) return false;
    return before.size === 0 || before.get(name) !== after.get(name);
  });
}

const NO_LINES: ReadonlyMap<string, string> = new Map();
const NO_NAMES: ReadonlySet<string> = new Set();

/** Line breaks cannot stand in a value, so they keep its lines apart. */
function linesByName(headers: HeaderList): ReadonlyMap<string, string> {
  const lines = new Map<string, string>();
  for (const [spelled, value] of headers) {
    const name = spelled.toLowerCase();
    const before = lines.get(name);
    lines.set(name, before === undefined ? value : `${before}\n${value}`);
  }
  return lines;
}

const CONNECTION = "connection";

/** RFC 9110 §7.6.1: what `Connection` names is hop-by-hop too. */
function namedInConnection(headers: HeaderList): ReadonlySet<string> {
  let names: Set<string> | undefined;
  for (const [name, value] of headers) {
    if (name.length !== CONNECTION.length || name.toLowerCase() !== CONNECTION) continue;
    names ??= new Set();
    for (const option of value.split(",")) names.add(option.trim().toLowerCase());
  }
  return names ?? NO_NAMES;
}
