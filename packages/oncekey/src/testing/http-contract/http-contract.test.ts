import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { memoryStore } from "oncekey/stores/memory";
import { describe, expect, it } from "vitest";
import type { TestRunner } from "../test-runner.js";
import { bindCases } from "./bind.js";
import { withContext } from "./context.js";
import {
  type BoundRoute,
  bindHttpContract,
  type HttpContractSetup,
  httpContract,
  type Reply,
  startServer,
} from "./index.js";

/** A server that takes no notice of keys at all. */
const careless: HttpContractSetup = {
  openStore: () => memoryStore(),
  listen: ({ routes }) =>
    startServer(
      createServer((request, response) => {
        const route = routes.find((one) => matches(one, request));
        if (route !== undefined) void serve(route, request, response).catch(() => response.destroy());
        else response.writeHead(404).end();
      }),
    ),
};

function matches({ mount, path, method }: BoundRoute, request: IncomingMessage): boolean {
  const pattern = (mount + path).replaceAll(/:\w+/g, "[^/]+");
  return request.method === method && new RegExp(`^${pattern}(\\?|$)`).test(request.url ?? "");
}

async function serve(route: BoundRoute, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks: Buffer[] = await request.toArray();
  const bytes = Buffer.concat(chunks);
  const body: unknown = route.parses === "json" && bytes.length > 0 ? JSON.parse(bytes.toString()) : bytes;
  const noWork = () => {
    throw Object.assign(new Error("There is no work here"), { code: "NOT_PROTECTED" });
  };
  await write(response, await route.handle({ body, work: noWork }));
}

async function write(response: ServerResponse, reply: Reply): Promise<void> {
  switch (reply.kind) {
    case "json":
      response.writeHead(reply.status, reply.headers.flat()).end(JSON.stringify(reply.value));
      break;
    case "stream":
      response.writeHead(reply.status, reply.headers.flat());
      for await (const chunk of reply.chunks()) response.write(chunk);
      response.end();
      break;
    case "bytes":
    case "empty":
      response.writeHead(reply.status, reply.headers.flat()).end("body" in reply ? reply.body : undefined);
      break;
    case "redirect":
      response.writeHead(303, { Location: reply.location }).end();
      break;
    case "throw":
      response.writeHead(reply.status ?? 500).end(reply.message);
      break;
    default:
      response.destroy();
  }
}

/** A runner that runs one case after the other, and tells which passed. */
async function outcomes(bind: (runner: TestRunner) => void): Promise<Map<string, "passed" | "failed">> {
  const cases = new Map<string, () => Promise<void>>();
  bind({ describe: (_, body) => body(), it: (name, body) => cases.set(name, body) });
  const ends = await Promise.all(
    [...cases].map(
      async ([name, body]) =>
        [
          name,
          await body().then(
            () => "passed" as const,
            () => "failed" as const,
          ),
        ] as const,
    ),
  );
  return new Map(ends);
}

describe("httpContract", () => {
  it("has a name of its own and a reason for every case", () => {
    expect(new Set(httpContract.map(({ name }) => name)).size).toBe(httpContract.length);
    for (const { name, why } of httpContract) expect(why.length, name).toBeGreaterThan(10);
  });

  it("is not passed by a server that takes no notice of keys", async () => {
    const ends = await outcomes((runner) => bindHttpContract(runner, careless));
    const passed = [...ends].filter(([, end]) => end === "passed").map(([name]) => name);
    expect(passed).toEqual([
      "other methods pass through",
      "a route beside it that is not protected is left alone",
    ]);
  }, 120_000);

  it("leaves out what needs transactions where there are none", async () => {
    const names: string[] = [];
    bindHttpContract({ describe: (_, body) => body(), it: (name) => names.push(name) }, careless);
    const left = httpContract.filter(({ needs }) => needs === undefined).map(({ name }) => name);
    expect(names).toEqual(left);
    expect(names.length).toBeLessThan(httpContract.length);
  });
});

describe("waivers", () => {
  const passing = { name: "passes", why: "for this test", run: async () => undefined };
  const failing = { name: "fails", why: "for this test", run: () => Promise.reject(new Error("no")) };

  it("let a case fail, and only fail", async () => {
    const waivers = { passes: "no reason", fails: "cannot be done here" };
    const ends = await outcomes((runner) =>
      bindCases(runner, { some: [passing, failing] }, { ...careless, waivers }),
    );
    expect([...ends]).toEqual([
      ["passes (waived: no reason)", "failed"],
      ["fails (waived: cannot be done here)", "passed"],
    ]);
  });

  it("have to name a case", () => {
    const waivers = { gone: "it was renamed" };
    expect(() => bindCases({ describe, it }, { some: [passing] }, { ...careless, waivers })).toThrow("gone");
  });
});

describe("withContext", () => {
  it("closes everything, whatever a case does", async () => {
    const open = new Set<string>();
    const setup: HttpContractSetup = {
      openStore: () => {
        open.add("store");
        const store = memoryStore();
        return {
          ...store,
          close: async () => {
            open.delete("store");
            await store.close();
          },
        };
      },
      async listen(app) {
        open.add("server");
        const server = await careless.listen(app);
        return {
          ...server,
          close: async () => {
            open.delete("server");
            await server.close();
          },
        };
      },
    };
    const run = withContext(setup, async (context) => {
      await context.serve({ path: "/", handle: () => ({ kind: "destroy" }) });
      expect(open.size).toBe(2);
      throw new Error("the case failed");
    });
    await expect(run).rejects.toThrow("the case failed");
    expect(open.size).toBe(0);
  });
});
