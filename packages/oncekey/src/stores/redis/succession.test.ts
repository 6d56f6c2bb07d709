import { describe, expect, it } from "vitest";
import type { ClaimRequest } from "../../core/store.js";
import { createSuccession } from "./succession.js";

const claim = (parts: Partial<ClaimRequest> = {}) =>
  ({ guarantee: "at-most-once", leaseMs: 30_000, token: "new", ...parts }) as ClaimRequest;
const absent = async () => ({ record: undefined });
const present = async () => ({ record: {} as never });

function setUp() {
  let nowMs = 0;
  let look = async (): Promise<void> => undefined;
  const succession = createSuccession(
    () => nowMs,
    () => look(),
  );
  return {
    lookBy(other: () => Promise<void>) {
      look = other;
    },
    succession,
    passes: async (request: ClaimRequest, read: typeof absent | typeof present = absent) => {
      if (!succession.concerns(request)) return true;
      return succession.admit(request, read).then(
        () => true,
        (error: { retryAfterMs: number }) => error.retryAfterMs,
      );
    },
    advance(ms: number) {
      nowMs += ms;
    },
  };
}

describe("after another server has taken over", () => {
  it("a key that it has never seen waits for one lease of its claim, and no longer", async () => {
    const { succession, passes, advance } = setUp();
    expect(succession.seen(["a"])).toBe("first");
    expect(await passes(claim())).toBe(true);
    expect(succession.seen(["b"])).toBe("replaced");
    expect(await passes(claim())).toBe(30_000);
    advance(12_000);
    expect(await passes(claim())).toBe(18_000);
    expect(await passes(claim({ leaseMs: 12_000 }))).toBe(true);
    advance(18_000);
    expect(await passes(claim())).toBe(true);
  });

  it("a key that it knows, another guarantee, and a holder that lives on do not wait", async () => {
    const { succession, passes } = setUp();
    succession.seen(["a"]);
    succession.seen(["b"]);
    expect(await passes(claim(), present)).toBe(true);
    expect(await passes(claim({ guarantee: "at-least-once" }))).toBe(true);
    succession.gone("holder" as never);
    expect(await passes(claim({ token: "holder" as never }))).toBe(true);
    expect(await passes(claim())).toBe(30_000);
  });

  it("between the loss of the connection and the name of its successor nobody is sure", async () => {
    const { succession, passes, lookBy } = setUp();
    succession.lost();
    expect(await passes(claim())).toBe(true);
    succession.seen(["a"]);
    succession.lost();
    expect(await passes(claim())).toBe(30_000);
    lookBy(async () => {
      expect(succession.seen(["a"])).toBe("same");
    });
    const waiting = passes(claim());
    expect(await waiting).toBe(true);
  });

  it("who has not said who it is makes nobody sure", async () => {
    const { succession, passes } = setUp();
    succession.seen(["a"]);
    succession.lost();
    expect(succession.seen([undefined])).toBe("same");
    expect(succession.seen([])).toBe("same");
    expect(await passes(claim())).toBe(30_000);
    expect(succession.seen(["b"])).toBe("replaced");
  });
});

describe("who has been replaced", () => {
  it("nobody, when a server comes back, leaves, or joins", () => {
    const { succession } = setUp();
    expect(succession.seen(["a", "b", "c"])).toBe("first");
    expect(succession.seen(["a", "b", "c"])).toBe("same");
    expect(succession.seen(["b", "c"])).toBe("same");
    expect(succession.seen(["c", "b", "a"])).toBe("same");
    expect(succession.seen(["a", "b", "c", "d"])).toBe("same");
    expect(succession.seen([undefined])).toBe("same");
  });

  it("a server of a cluster, also if it was away for a time before", () => {
    const { succession } = setUp();
    succession.seen(["a", "b", "c"]);
    succession.seen(["b", "c"]);
    expect(succession.seen(["b", "c", "promoted"])).toBe("replaced");
    expect(succession.seen(["b", "c", "promoted"])).toBe("same");
  });
});
