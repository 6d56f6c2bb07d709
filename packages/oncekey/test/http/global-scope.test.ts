import { describe, expect, it } from "vitest";
import { createIdempotency } from "../../src/core/idempotency.js";
import { GLOBAL_SCOPE } from "../../src/core/key.js";
import { idempotent } from "../../src/http/fetch.js";
import { memoryStore } from "../../src/stores/memory/index.js";

describe("GLOBAL_SCOPE as the scope of a route", () => {
  it("says the same as the word, and not the same as a caller of that name", async () => {
    const idempotency = createIdempotency({ store: memoryStore({ sweepIntervalMs: 0 }) });
    let runs = 0;
    const ask = async (scope: "global" | typeof GLOBAL_SCOPE | (() => string)) => {
      const route = idempotent(idempotency, { operation: "POST /", scope }, () => {
        runs += 1;
        return new Response(String(runs));
      });
      const headers = { "Idempotency-Key": "k" };
      const answer = await route(new Request("http://localhost/", { method: "POST", headers, body: "1" }));
      return answer.text();
    };
    expect(await ask(GLOBAL_SCOPE)).toBe("1");
    expect(await ask("global")).toBe("1");
    expect(await ask(() => "global")).toBe("2");
  });

  it("is taken by a route that is checked, where another object is not", () => {
    const idempotency = createIdempotency({ store: memoryStore({ sweepIntervalMs: 0 }) });
    const route = (scope: object) => () => idempotent(idempotency, { scope } as never, () => new Response());
    expect(route(GLOBAL_SCOPE)).not.toThrow();
    expect(route({ kind: "of", parts: ["a"] })).toThrow(/scope must be a function or "global"/);
  });
});
