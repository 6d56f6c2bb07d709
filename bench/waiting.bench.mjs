/**
 * @module
 * A thousand repeats of one key wait for one handler of 200 ms, and somebody asks for something else meanwhile.
 *
 * `node waiting.bench.mjs [rounds]`. Bare, a thousand requests wait for one held answer, which is the least it can take.
 */
import { NESTED } from "./lib/bodies.mjs";
import { openClient, requestBytes, stayAwake } from "./lib/load.mjs";
import { inTurns, median, ratio, start } from "./lib/measure.mjs";
import { section, table } from "./lib/report.mjs";

const rounds = Number(process.argv[2] ?? 5);
const REPEATS = 1_000;
const HANDLER_MS = 200;
const WARM_TURNS = 12;
const WARM_BURSTS = 8;
const OTHER = Buffer.from("GET /other HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");

/** Connections are opened, and the code is warm, before it counts: first requests, and bursts of other keys. */
async function warmUp(clients) {
  await Promise.all(clients.map((client) => client.send(OTHER)));
  for (let turn = 0; turn < WARM_TURNS; turn += 1) {
    await Promise.all(
      clients.map((client, index) => client.send(requestBytes("/orders", NESTED, `w-${turn}-${index}`))),
    );
  }
  for (let burst = 0; burst < WARM_BURSTS; burst += 1) {
    await Promise.all(clients.map((client) => client.send(requestBytes("/slow", NESTED, `burst-${burst}`))));
  }
}

async function measure(framework, variant) {
  const server = await start(framework, variant);
  const clients = Array.from({ length: REPEATS }, () => openClient(server.port));
  const other = openClient(server.port);
  const request = requestBytes("/slow", NESTED, "the-one-key");
  await warmUp(clients);
  const { runs: runsBefore } = await server.facts();
  const sleep = stayAwake();
  let done = false;
  const probes = [];
  const probing = (async () => {
    while (!done) {
      const sentMs = performance.now();
      await other.send(OTHER);
      probes.push(performance.now() - sentMs);
    }
  })();
  const beganMs = performance.now();
  const answers = await Promise.all(clients.map((client) => client.send(request)));
  const tookMs = performance.now() - beganMs;
  sleep();
  done = true;
  await probing;
  const { runs, stallMs } = await server.facts();
  for (const client of [...clients, other]) client.close();
  await server.stop();
  const ok = answers.filter(({ status }) => status === 201).length;
  if (ok !== REPEATS || runs - runsBefore !== 1)
    throw new Error(`${framework} ${variant}: ${ok} answers, ${runs} runs`);
  probes.sort((a, b) => a - b);
  return { tookMs, overMs: tookMs - HANDLER_MS, p99Ms: probes[Math.floor(probes.length * 0.99)], stallMs };
}

for (const framework of ["fastify", "express"]) {
  const variants = ["bare", "request"];
  const results = await inTurns(variants, rounds, (variant) => measure(framework, variant));
  section(`${framework}: ${REPEATS} repeats of one key on a handler of ${HANDLER_MS} ms`);
  table(
    ["variant", "all answered ms", "÷ bare", "other endpoint p99 ms", "÷ bare", "longest stall ms"],
    variants.map((variant) => {
      const own = results.get(variant);
      return [
        variant,
        median(own.map((one) => one.tookMs)).toFixed(0),
        ratio(results, variant, "bare", (one) => one.tookMs).toFixed(2),
        median(own.map((one) => one.p99Ms)).toFixed(1),
        ratio(results, variant, "bare", (one) => one.p99Ms).toFixed(2),
        median(own.map((one) => one.stallMs)).toFixed(1),
      ];
    }),
  );
}
