import { createIdempotency } from "oncekey";
import { type HttpOptions, idempotent } from "oncekey/http/fetch";
import { memoryStore } from "oncekey/stores/memory";
import { recordEvents } from "oncekey/testing";
import { describe, expect, it } from "vitest";

async function answerUnder(scope: unknown) {
  const events = recordEvents();
  const idempotency = createIdempotency({ store: memoryStore(), onEvent: events.listener });
  let runs = 0;
  const options = { operation: "op", scope } as HttpOptions<Request> & { scope: "global" };
  const POST = idempotent(idempotency, options, () => new Response(String(++runs)));
  const headers = { "Idempotency-Key": "k1" };
  const { status } = await POST(new Request("http://shop.example/", { method: "POST", headers }));
  return { status, runs, rejected: events.of("rejected") };
}

describe("a scope function that fails", () => {
  it("tells the operator what it threw, and not the client", async () => {
    const thrown = new TypeError("Cannot read properties of undefined (reading 'id')");
    const { status, runs, rejected } = await answerUnder(() => {
      throw thrown;
    });
    expect([status, runs]).toEqual([500, 0]);
    expect(rejected).toMatchObject([{ code: "SCOPE_FAILED", cause: thrown }]);
  });

  it.each([
    ["an object", { id: 1 }],
    ["a list with an object", ["tenant", { id: 1 }]],
    ["a function", () => "alice"],
    ["what a scope of all callers looks like", { kind: "global" }],
  ])("by returning %s, is a fault of the service and no missing caller", async (_, returned) => {
    const { status, runs, rejected } = await answerUnder(() => returned);
    expect([status, runs]).toEqual([500, 0]);
    const cause = expect.objectContaining({
      message: expect.stringContaining("scope must be a text, number"),
    });
    expect(rejected).toMatchObject([{ code: "SCOPE_FAILED", cause }]);
  });
});

describe("a scope function that finds no caller", () => {
  it.each([[undefined], [null], [""], [[]], [["tenant", undefined]]])(
    "by returning %j, asks for authentication",
    async (returned) => {
      const { status, runs, rejected } = await answerUnder(() => returned);
      expect([status, runs]).toEqual([401, 0]);
      expect(rejected).toMatchObject([{ code: "SCOPE_MISSING", cause: undefined }]);
    },
  );
});

describe("a call of run whose identity is of a wrong type", () => {
  const idempotency = createIdempotency({ store: memoryStore() });
  const call = { operation: "op", scope: "alice", key: "k1", fingerprint: "off" } as const;
  const refused = (changes: object) =>
    idempotency
      .run({ ...call, ...changes } as never, () => "ran")
      .catch((error: { code: string }) => error.code);

  it("is told so, and not that something is missing", async () => {
    expect(await refused({ key: { id: 1 } })).toBe("KEY_INVALID");
    expect(await refused({ key: undefined })).toBe("KEY_MISSING");
    expect(await refused({ scope: { id: 1 } })).toBe("CONFIGURATION_INVALID");
    expect(await refused({ scope: undefined })).toBe("SCOPE_MISSING");
  });

  it("nor under a scope function of the instance", async () => {
    const scoped = createIdempotency({ store: memoryStore(), scope: (() => ({ id: 1 })) as never });
    const { scope: _, ...unscoped } = call;
    const ran = scoped.run(unscoped as never, () => "ran");
    await expect(ran).rejects.toMatchObject({
      code: "SCOPE_FAILED",
      cause: { code: "CONFIGURATION_INVALID" },
    });
  });
});
