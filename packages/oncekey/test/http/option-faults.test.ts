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
