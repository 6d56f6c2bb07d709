/** How clients see the presets, over a real server. What they mean for `run` is tested beside them. */
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { createIdempotency } from "oncekey";
import { idempotent } from "oncekey/http/node";
import { ietf, stripe } from "oncekey/presets";
import { memoryStore } from "oncekey/stores/memory";
import { afterEach, describe, expect, it } from "vitest";

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
});

/** Serves `/charges` under a preset. The handler answers with the status that its client asks for, when it is let go. */
async function serve(preset: typeof ietf | typeof stripe) {
  const store = memoryStore();
  const idempotency = createIdempotency({ store, scope: "global" });
  let runs = 0;
  let hold: Promise<void> | undefined;
  const charge = idempotent(idempotency, { ...preset }, async (request, response) => {
    runs += 1;
    await hold;
    response.writeHead(Number(request.headers["x-status"] ?? 201)).end(`run ${runs}`);
  });
  const listener: RequestListener = (request, response) => void charge(request, response);
  const server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanups.push(
    () => server.close(),
    () => idempotency.close(),
    () => store.close(),
  );
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/charges`;
  return {
    runs: () => runs,
    /** Holds the next runs until the returned function is called. */
    hold() {
      let letGo = (): void => undefined;
      hold = new Promise((resolve) => {
        letGo = resolve;
      });
      return letGo;
    },
    async post(key: string, { status = 201, body = "10 EUR" } = {}) {
      const headers = { "Idempotency-Key": key, "X-Status": `${status}` };
      const response = await fetch(url, { method: "POST", headers, body });
      const replayed = response.headers.get("idempotency-replayed") === "true";
      return { status: response.status, text: await response.text(), replayed };
    },
  };
}

describe.each([
  ["ietf", ietf],
  ["stripe", stripe],
] as const)("the preset %s over HTTP", (_, preset) => {
  it("replays a success, and refuses other parameters with 422", async () => {
    const { post, runs } = await serve(preset);
    expect(await post("k")).toEqual({ status: 201, text: "run 1", replayed: false });
    expect(await post("k")).toEqual({ status: 201, text: "run 1", replayed: true });
    expect(await post("k", { body: "11 EUR" })).toMatchObject({ status: 422 });
    expect(runs()).toBe(1);
  });

  it("refuses a concurrent repeat with 409, and gives it the result later", async () => {
    const { post, runs, hold } = await serve(preset);
    const letGo = hold();
    const first = post("k");
    await expect.poll(runs).toBe(1);
    expect(await post("k")).toMatchObject({ status: 409 });
    letGo();
    expect(await first).toMatchObject({ status: 201, replayed: false });
    expect(await post("k")).toMatchObject({ status: 201, replayed: true });
    expect(runs()).toBe(1);
  });

  it("takes keys of up to 255 characters", async () => {
    const { post } = await serve(preset);
    expect(await post("k".repeat(255))).toMatchObject({ status: 201 });
    expect(await post("k".repeat(256))).toMatchObject({ status: 400 });
  });

  it("keeps a client error", async () => {
    const { post } = await serve(preset);
    await post("k", { status: 402 });
    expect(await post("k", { status: 402 })).toEqual({ status: 402, text: "run 1", replayed: true });
  });

  it.each([401, 429])("does not keep %i", async (status) => {
    const { post } = await serve(preset);
    await post("k", { status });
    expect(await post("k")).toEqual({ status: 201, text: "run 2", replayed: false });
  });
});

describe("a server error over HTTP", () => {
  it("frees the key under ietf", async () => {
    const { post } = await serve(ietf);
    await post("k", { status: 500 });
    expect(await post("k")).toEqual({ status: 201, text: "run 2", replayed: false });
  });

  it("is the result under stripe", async () => {
    const { post } = await serve(stripe);
    await post("k", { status: 500 });
    expect(await post("k")).toEqual({ status: 500, text: "run 1", replayed: true });
  });
});
