/**
 * @module
 * What the memory store costs on each framework: first requests with unique keys, and replays, 1 KB in and out.
 *
 * `node http.bench.mjs [framework] [rounds]`. All variants of a framework are started and warmed up first, then measured
 * in turns. Figures are medians; read the ratios, which come from the same round. There are two: answers per second, and
 * requests per second of the server's CPU time, which the load generator has no part in.
 */
import { FLAT, NESTED } from "./lib/bodies.mjs";
import { load, requestBytes } from "./lib/load.mjs";
import { inTurns, median, ratio, start } from "./lib/measure.mjs";
import { section, table } from "./lib/report.mjs";

const only = process.argv[2] ?? "all";
const rounds = Number(process.argv[3] ?? 7);
const CONNECTIONS = 64;
const FOR_MS = 1_500;
/** The optimizing compiler needs some ten thousand requests before the figures stand still. */
const WARM_REQUESTS = 25_000;

/** What each variant has to reach. */
const TARGETS = {
  fastify: {
    bare: "",
    "map-sha": "",
    off: "0.85 of bare",
    bytes: "0.75 of bare",
    request: "0.65 of bare, 0.90 of map-sha",
  },
  express: { bare: "", "map-sha": "", off: "", request: "" },
  hono: { bare: "", "map-sha": "", off: "", request: "" },
};

/** Starts a variant and warms it up with first requests. */
async function prepare(framework, variant, body) {
  const server = await start(framework, variant);
  let count = 0;
  const fresh = () => {
    count += 1;
    return requestBytes("/orders", body, `key-${count}`);
  };
  const fixed = requestBytes("/orders", body, "the-one-key");
  while (count < WARM_REQUESTS) await measure({ server, variant }, fresh);
  for (let answered = 0; answered < WARM_REQUESTS; ) {
    answered += (await measure({ server, variant }, () => fixed, FOR_MS / 3)).requests;
  }
  return { server, variant, fresh, fixed };
}

async function measure({ server, variant }, next, forMs = FOR_MS) {
  const before = await server.facts();
  const result = await load({ port: server.port, connections: CONNECTIONS, forMs, next });
  const after = await server.facts();
  const bad = Object.keys(result.statuses).filter((status) => status !== "201");
  if (bad.length > 0) throw new Error(`${variant}: ${JSON.stringify(result.statuses)}`);
  const cpuUs = ((after.cpuMs - before.cpuMs) * 1000) / result.requests;
  return { ...result, cpuUs, runs: after.runs - before.runs };
}

function checkRuns(results, expected) {
  for (const [variant, rounds_] of results) {
    for (const { runs, requests } of rounds_) {
      const right = variant === "bare" ? requests : expected(requests);
      if (runs !== right) throw new Error(`${variant}: the handler ran ${runs} times, not ${right}`);
    }
  }
}

const HEAD = [
  "variant",
  "req/s",
  "÷ bare",
  "÷ map-sha",
  "CPU µs",
  "CPU added µs",
  "by CPU ÷ bare",
  "by CPU ÷ map-sha",
  "p50 ms",
  "p99 ms",
  "target",
];

function report(title, results, targets) {
  const middle = (variant, figure) => median(results.get(variant).map(figure));
  const over = (variant, base) => ratio(results, variant, base, (one) => one.perSecond).toFixed(2);
  const byCpu = (variant, base) => ratio(results, variant, base, (one) => 1 / one.cpuUs).toFixed(2);
  section(title);
  table(
    HEAD,
    [...results.keys()].map((variant) => [
      variant,
      middle(variant, (one) => one.perSecond).toFixed(0),
      over(variant, "bare"),
      over(variant, "map-sha"),
      middle(variant, (one) => one.cpuUs).toFixed(0),
      (middle(variant, (one) => one.cpuUs) - middle("bare", (one) => one.cpuUs)).toFixed(0),
      byCpu(variant, "bare"),
      byCpu(variant, "map-sha"),
      middle(variant, (one) => one.p50Ms).toFixed(2),
      middle(variant, (one) => one.p99Ms).toFixed(1),
      targets[variant],
    ]),
  );
}

/** Measures one framework with one body: first requests, then replays. */
async function run(framework, targets, name, body) {
  const prepared = new Map();
  for (const variant of Object.keys(targets)) prepared.set(variant, await prepare(framework, variant, body));
  const variants = [...prepared.keys()];
  const first = await inTurns(variants, rounds, (variant) => {
    const one = prepared.get(variant);
    return measure(one, one.fresh);
  });
  checkRuns(first, (requests) => requests);
  report(`${framework}, ${name} body: first requests, unique keys`, first, targets);
  const replays = await inTurns(variants, rounds, (variant) => {
    const one = prepared.get(variant);
    return measure(one, () => one.fixed);
  });
  checkRuns(replays, () => 0);
  report(`${framework}, ${name} body: replays of one key`, replays, {
    ...targets,
    off: "",
    bytes: "",
    request: "0.9 of bare",
  });
  for (const { server } of prepared.values()) await server.stop();
}

for (const [framework, targets] of Object.entries(TARGETS)) {
  if (only !== "all" && only !== framework) continue;
  await run(framework, targets, "nested", NESTED);
  if (framework === "fastify") {
    await run(framework, { bare: "", "map-sha": "", request: "0.75 of bare" }, "flat", FLAT);
  }
}
