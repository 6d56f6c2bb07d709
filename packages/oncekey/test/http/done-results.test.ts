import { createIdempotency, type Reconcile } from "oncekey";
import type { HttpResult } from "oncekey/http";
import { idempotent } from "oncekey/http/fetch";
import { memoryStore } from "oncekey/stores/memory";
import { recordEvents } from "oncekey/testing";
import { describe, expect, it } from "vitest";

const note = { by: "jo", reason: "the provider lists it" };

/** A route whose first request has left an outcome that is not known. */
async function unknownOutcome(onLapsed: Reconcile | undefined) {
  const events = recordEvents();
  const store = memoryStore();
  const policy = { guarantee: "at-most-once", acceptsLostWrites: true, onLapsed } as const;
  const idempotency = createIdempotency({ store, scope: "global", onEvent: events.listener, ...policy });
  const POST = idempotent(idempotency, { operation: "charge" }, () => {
    throw new Error("the provider broke off");
  });
  const headers = { "Idempotency-Key": "k1" };
  const send = () => POST(new Request("http://shop.example/", { method: "POST", headers }));
  await expect(send()).rejects.toThrow("the provider broke off");
  const { records } = await idempotency.list({ state: "unknown" });
  const recordKey = records[0]?.key;
  if (recordKey === undefined) throw new Error("no record is unknown");
  return { send, events, idempotency, store, target: { recordKey } };
}

const answer: HttpResult = { status: 201, headers: [["Location", "/charges/1"]], body: { id: 1 } };

describe("the result that a reconciler gives for a route", () => {
  it("is what repeats get", async () => {
    const { send } = await unknownOutcome(() => ({ kind: "done", result: answer }));
    const replay = await send();
    expect([replay.status, replay.headers.get("location"), await replay.json()]).toEqual([
      201,
      "/charges/1",
      { id: 1 },
    ]);
  });

  it.each([
    ["a Response", () => new Response("paid"), /A Response cannot be the result/],
    [
      "a stream as its body",
      () => ({ status: 200, body: new Blob(["paid"]).stream() }),
      /read a ReadableStream first/,
    ],
  ])("leaves the outcome unknown if it is %s, and the event says why", async (_, result, why) => {
    const { send, events } = await unknownOutcome(() => ({ kind: "done", result: result() }));
    expect((await send()).status).toBe(409);
    const [reconciled] = events.of("reconciled");
    expect(reconciled).toMatchObject({ verdict: "unknown", cause: { message: expect.stringMatching(why) } });
  });
});

describe("the result that an operator gives for a route", () => {
  it("is what repeats get", async () => {
    const { send, idempotency, target } = await unknownOutcome(undefined);
    await idempotency.resolve(target, { kind: "done", result: answer }, note);
    expect((await send()).status).toBe(201);
  });

  it("is refused if it is a Response, and nothing has changed", async () => {
    const { send, idempotency, target } = await unknownOutcome(undefined);
    const resolved = idempotency.resolve(target, { kind: "done", result: new Response("paid") }, note);
    await expect(resolved).rejects.toThrow(/A Response cannot be the result .* await response\.text\(\)/);
    expect((await send()).status).toBe(409);
  });

  it("is refused also where the route is not served, instead of being forgotten", async () => {
    const { send, store, target } = await unknownOutcome(undefined);
    const script = createIdempotency({ store, acceptsLostWrites: true });
    for (const result of [new Response("paid"), { ...answer, body: new Blob(["paid"]) }]) {
      const resolved = script.resolve(target, { kind: "done", result }, note);
      await expect(resolved).rejects.toThrow(/The result cannot be kept/);
    }
    expect((await send()).status).toBe(409);
    await script.resolve(target, { kind: "done", result: answer }, note);
    expect((await send()).status).toBe(201);
  });
});
