import { describe, expect, it } from "vitest";
import { resolveRoute } from "../src/http/options.js";
import { createIdempotency } from "../src/index.js";
import { memoryStore } from "../src/stores/memory/index.js";

const report = { operation: "report", key: "2026-11", input: {} } as const;

describe("limits of an instance", () => {
  it("bound what is kept of a result, unless the policy says otherwise", async () => {
    const idempotency = createIdempotency({
      store: memoryStore(),
      scope: "global",
      limits: { maxResultBytes: 8 },
    });
    expect(await idempotency.run(report, () => "more than eight bytes")).toBe("more than eight bytes");
    await expect(idempotency.run(report, () => "again")).rejects.toMatchObject({
      code: "RESULT_NOT_RETAINED",
    });
    const other = { ...report, key: "2026-12", maxResultBytes: 100 };
    expect(await idempotency.run(other, () => "more than eight bytes")).toBe("more than eight bytes");
    expect(await idempotency.run(other, () => "again")).toBe("more than eight bytes");
  });

  it("bound the keys, bodies and waits of its routes, unless they say otherwise", () => {
    const limits = { maxKeyLength: 64, maxRequestBytes: 2_048, maxWaitMs: 1_000 };
    const idempotency = createIdempotency({ store: memoryStore(), scope: "global", limits });
    expect(resolveRoute(idempotency, {})).toMatchObject(limits);
    const own = { maxKeyLength: 65, maxRequestBytes: 0, maxWaitMs: 0 };
    expect(resolveRoute(idempotency, own)).toMatchObject(own);
  });
});
