import { createIdempotency, type Store } from "oncekey";
import type { ScopedHttpOptions } from "oncekey/http";
import { idempotent } from "oncekey/http/node";
import { memoryStore } from "oncekey/stores/memory";
import { recordEvents } from "oncekey/testing";
import { describe, expect, it } from "vitest";
import { listen, post } from "./raw-http.js";

const KEY = 'Idempotency-Key: "k1"';

const broken = (): never => {
  throw new Error("a slip in an option");
};

/** With a database that refuses every commit. */
function refusingStore(): Store<object> {
  return {
    ...memoryStore(),
    begin: () => ({
      handle: {},
      used: () => true,
      commit: async () => ({ kind: "refused", reason: "deadlock" }),
      rollback: async () => undefined,
    }),
  };
}

async function serve(options: Omit<ScopedHttpOptions<unknown>, "scope">, store: Store = memoryStore()) {
  const events = recordEvents();
  const idempotency = createIdempotency({ store, onEvent: events.listener });
  let runs = 0;
  const faults: unknown[] = [];
  const protectedHandler = idempotent(idempotency, { ...options, scope: "global" }, (_req, res) => {
    runs++;
    res.writeHead(201).end("done");
  });
  const server = await listen((req, res) => {
    protectedHandler(req, res).catch((fault: unknown) => faults.push(fault));
  });
  return {
    faults,
    runs: () => runs,
    warnings: () => events.of("warning").map(({ text }) => text),
    async ask() {
      const client = await server.connect();
      client.send(post("/", "", [KEY]));
      return client.answer();
    },
  };
}

describe("a function given in the options that is async, which only JavaScript lets through", () => {
  // A promise would always mean yes, and one that fails would end the process.
  const asynchronous = (async () => Promise.reject(new Error("a slip in an option"))) as never;

  it.each(["keep", "commitWhen"])("as %s, gives way to the default rule", async (name) => {
    const { ask, runs, warnings } = await serve({ [name]: asynchronous });
    const answers = [await ask(), await ask()];
    expect(answers.map(({ status }) => status)).toEqual([201, 201]);
    expect(runs()).toBe(1);
    expect(warnings()).toEqual([`${name} threw, or is async; the default rule was used`]);
  });

  it("as key, is a fault of the service and not of its clients", async () => {
    const { ask, runs, faults } = await serve({ key: asynchronous });
    expect((await ask()).status).toBe(500);
    expect(runs()).toBe(0);
    expect(faults).toEqual([expect.any(TypeError)]);
  });
});

describe("renderRefusal", () => {
  const body = new Uint8Array(0);
  it.each<[string, unknown]>([
    ["nothing", undefined],
    ["a text as body", { status: 400, headers: [], body: "no key" }],
    ["no body", { status: 400, headers: [] }],
    ["an object of headers", { status: 400, headers: { "X-A": "1" }, body }],
    ["a header that breaks out", { status: 400, headers: [["X-A", "1\r\nX-B: 2"]], body }],
    ["a status that is no final one", { status: 100, headers: [], body }],
    ["a Response", new Response("no key", { status: 400 })],
    ["a promise of nothing", Promise.resolve()],
  ])("that returns %s is a fault of the service, which nobody takes for a refusal", async (_, answer) => {
    const { ask, faults } = await serve({ renderRefusal: () => answer as never, key: () => undefined });
    expect((await ask()).status).toBe(500);
    expect(faults).toMatchObject([
      { message: expect.stringContaining("renderRefusal must return an answer") },
    ]);
  });

  it("may take its time, and may fail", async () => {
    const late = { status: 418, headers: [["X-A", "1"]] as const, body: new TextEncoder().encode("no key") };
    const { ask } = await serve({ renderRefusal: async () => late, key: () => undefined });
    const answer = await ask();
    expect([answer.status, answer.header("x-a"), `${answer.body}`]).toEqual([418, "1", "no key"]);
    const failing = await serve({
      renderRefusal: () => Promise.reject(new Error("a slip in an option")),
      key: () => undefined,
    });
    expect((await failing.ask()).status).toBe(500);
    expect(failing.faults).toMatchObject([{ message: "a slip in an option" }]);
  });
});

describe("a function given in the options that throws", () => {
  it("as commitWhen, after the effect, frees no key", async () => {
    const { ask, runs, warnings } = await serve({ commitWhen: broken });
    const answers = [await ask(), await ask()];
    expect(answers.map(({ status }) => status)).toEqual([201, 201]);
    expect(runs()).toBe(1);
    expect(warnings()).toEqual([expect.stringContaining("commitWhen threw")]);
  });

  it("as renderRefusal, in place of an answer that is held back, cuts the connection instead of keeping it waiting", async () => {
    const options = { guarantee: "exactly-once", renderRefusal: broken } as const;
    const { ask, faults } = await serve(options, refusingStore());
    await expect(ask()).rejects.toThrow();
    expect(faults).toMatchObject([{ message: "a slip in an option" }]);
  });
});
