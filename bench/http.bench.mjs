/**
 * @module
 * What the memory store costs on each framework: first requests with unique keys, and replays, 1 KB in and out.
 *
 * `node http.bench.mjs [rounds] [seconds]`. Figures are medians; read the ratios, which come from the same round.
 */
import { FLAT, NESTED } from "./lib/bodies.mjs";
import { load, requestBytes } from "./lib/load.mjs";
import { inTurns, median, ratio, start } from "./lib/measure.mjs";
import { section, table } from "./lib/report.mjs";

const rounds = Number(process.argv[2] ?? 5);
const forMs = Number(process.argv[3] ?? 2) * 1000;
const CONNECTIONS = 32;

/** variant, body, and what it has to reach beside `bare` or `map-sha`. */
const CASES = {
  fastify: [
    { variant: "bare", body: NESTED },
    { variant: "map-sha", body: NESTED },
    { variant: "off", body: NESTED, target: "0.85 of bare" },
    { variant: "bytes", body: NESTED, target: "0.75 of bare" },
    { variant: "request", body: NESTED, target: "0.65 of bare, 0.90 of map-sha" },
  ],
  express: [
    { variant: "bare", body: NESTED },
    { variant: "map-sha", body: NESTED },
    { variant: "off", body: NESTED },
    { variant: "request", body: NESTED },
  ],
  hono: [
    { variant: "bare", body: NESTED },
    { variant: "map-sha", body: NESTED },
    { variant: "off", body: NESTED },
    { variant: "request", body: NESTED },
  ],
};

async function measure(framework, variant, body, replay) {
  const server = await start(framework, variant);
  let count = 0;
  const fixed = requestBytes("/orders", body, "the-one-key");
  const fresh = () => {
    count += 1;
    return requestBytes("/orders", body, `key-${count}`);
  };
  const next = replay ? () => fixed : fresh;
  if (replay) await load({ port: server.port, connections: 1, forMs: 50, next });
  await load({ port: server.port, connections: CONNECTIONS, forMs: 500, next });
  const before = await server.facts();
  const result = await load({ port: server.port, connections: CONNECTIONS, forMs, next });
  const after = await server.facts();
  await server.stop();
  const bad = Object.entries(result.statuses).filter(([status]) => status !== "201");
  if (bad.length > 0) throw new Error(`${framework} ${variant}: ${JSON.stringify(result.statuses)}`);
  if (replay && variant !== "bare" && after.runs !== 1) throw new Error(`${variant} ran ${after.runs} times`);
  if (!replay && after.runs < result.requests)
    throw new Error(`${variant} ran ${after.runs} of ${result.requests}`);
  return { ...result, cpuUs: ((after.cpuMs - before.cpuMs) * 1000) / result.requests };
}

function rows(results, cases) {
  const perSecond = ({ perSecond: value }) => value;
  return cases.map(({ variant, target = "" }) => {
    const own = results.get(variant);
    const others = own.map((one) => one.cpuUs);
    const bare = ratio(results, variant, "bare", perSecond);
    const byHand = results.has("map-sha") ? ratio(results, variant, "map-sha", perSecond) : Number.NaN;
    return [
      variant,
      median(own.map(perSecond)).toFixed(0),
      bare.toFixed(2),
      Number.isNaN(byHand) ? "" : byHand.toFixed(2),
      median(others).toFixed(0),
      median(own.map((one) => one.p50Ms)).toFixed(2),
      median(own.map((one) => one.p99Ms)).toFixed(1),
      target,
    ];
  });
}

const HEAD = ["variant", "req/s", "÷ bare", "÷ map-sha", "CPU µs", "p50 ms", "p99 ms", "target"];

for (const [framework, cases] of Object.entries(CASES)) {
  for (const replay of [false, true]) {
    const bodies = new Map(cases.map(({ variant, body }) => [variant, body]));
    const results = await inTurns([...bodies.keys()], rounds, (variant) =>
      measure(framework, variant, bodies.get(variant), replay),
    );
    section(`${framework}, ${replay ? "replays of one key" : "first requests, unique keys"}, nested body`);
    table(HEAD, rows(results, cases));
  }
}

const flat = await inTurns(["bare", "map-sha", "request"], rounds, (variant) =>
  measure("fastify", variant, FLAT, false),
);
section("fastify, first requests, unique keys, flat body");
table(
  HEAD,
  rows(flat, [{ variant: "bare" }, { variant: "map-sha" }, { variant: "request", target: "0.75 of bare" }]),
);
