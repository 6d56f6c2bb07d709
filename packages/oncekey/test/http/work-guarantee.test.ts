import { createIdempotency } from "oncekey";
import { idempotent } from "oncekey/http/fetch";
import { memoryStore } from "oncekey/stores/memory";
import { describe, expect, it } from "vitest";

const transaction = { name: "transaction" };
/** Any store with transactions; nothing is written through this one. */
const store = {
  ...memoryStore(),
  begin: () => ({
    handle: transaction,
    used: () => true,
    commit: async () => ({ kind: "refused", reason: "not asked" }) as const,
    rollback: async () => undefined,
  }),
};
const idempotency = createIdempotency({ store, scope: "global", acceptsLostWrites: true });
type Guarantee = "at-least-once" | "at-most-once" | "exactly-once";

let keys = 0;
async function workUnder(guarantee: Guarantee, asked: Guarantee | undefined): Promise<unknown> {
  let seen: unknown;
  const POST = idempotent(idempotency, { operation: "op", guarantee }, (request) => {
    try {
      seen = idempotency.workOf(request, asked).transaction;
    } catch (error) {
      seen = error;
    }
    return new Response("done");
  });
  keys += 1;
  const headers = { "Idempotency-Key": `k${keys}` };
  await POST(new Request("http://shop.example/", { method: "POST", headers }));
  return seen;
}

describe("workOf with the guarantee that a handler counts on", () => {
  it("gives the transaction on a route that is exactly-once", async () => {
    expect(await workUnder("exactly-once", "exactly-once")).toBe(transaction);
  });

  it.each([
    ["at-least-once", "exactly-once"],
    ["at-most-once", "exactly-once"],
    ["at-least-once", "at-most-once"],
    ["exactly-once", "at-most-once"],
  ] as const)("refuses on a route that is %s to stand for %s", async (guarantee, asked) => {
    const error = await workUnder(guarantee, asked);
    expect(error).toMatchObject({ code: "GUARANTEE_UNSUPPORTED" });
    expect((error as Error).message).toContain(`counts on ${asked}, but its call or route is ${guarantee}`);
  });

  it.each(["at-least-once", "at-most-once"] as const)(
    "serves who asks for nothing, or the least, on %s",
    async (guarantee) => {
      expect(await workUnder(guarantee, undefined)).toBeUndefined();
      expect(await workUnder(guarantee, "at-least-once")).toBeUndefined();
    },
  );
});
