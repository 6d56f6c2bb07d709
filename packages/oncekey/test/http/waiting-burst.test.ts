import { createIdempotency } from "oncekey";
import { idempotent } from "oncekey/http/node";
import { memoryStore } from "oncekey/stores/memory";
import { faultyStore } from "oncekey/testing";
import { expect, it } from "vitest";
import { listen, post } from "./raw-http.js";

const REPEATS = 1_000;

it("a thousand repeats of a running request get its answer by one run, and keep nobody else waiting", async () => {
  const store = faultyStore(memoryStore());
  const idempotency = createIdempotency({ store, scope: "global", onInFlight: { waitMs: 30_000 } });
  let runs = 0;
  let end = (): void => {};
  const listener = idempotent(idempotency, {}, (_req, res) => {
    runs++;
    end = () => res.end("paid");
  });
  let arrived = 0;
  let unrelated = 0;
  const server = await listen((req, res) => {
    if (req.method === "GET") {
      unrelated++;
      res.end("hello");
      return;
    }
    arrived++;
    void listener(req, res);
  });
  const request = post("/", "", ['Idempotency-Key: "k1"']);
  const clients = await Promise.all(Array.from({ length: REPEATS }, () => server.connect()));
  for (const client of clients) client.send(request);
  const visitor = await server.connect();
  // Before, while and after they arrive.
  while (unrelated < 20 || arrived < REPEATS) {
    visitor.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    expect((await visitor.answer()).status).toBe(200);
  }
  expect(runs).toBe(1);
  end();
  const answers = await Promise.all(clients.map((client) => client.answer()));
  expect(new Set(answers.map(({ status, body }) => `${status} ${body}`))).toEqual(new Set(["200 paid"]));
  const replays = answers.filter(({ header }) => header("idempotency-replayed") === "true");
  expect(replays).toHaveLength(REPEATS - 1);
  expect([runs, store.count("claim"), store.count("status")]).toEqual([1, 1, 0]);
}, 60_000);
