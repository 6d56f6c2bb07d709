import { describe, expect, it } from "vitest";
import { createIdempotency, GLOBAL_SCOPE, notPerformed, ReplayedError } from "../index.js";
import { memoryStore } from "../stores/memory/index.js";
import { manualClock } from "../testing/index.js";
import { ietf, stripe } from "./index.js";

const charge = { operation: "charge", scope: GLOBAL_SCOPE, key: "order-1", input: { amount: 10 } } as const;

/** Work that goes on until the test says how it ends. */
function gate() {
  let open: (result: string) => void = () => undefined;
  const opened = new Promise<string>((resolve) => {
    open = resolve;
  });
  return { opened, open: (result: string) => open(result) };
}

function setUp(preset: typeof ietf | typeof stripe) {
  const clock = manualClock();
  const idempotency = createIdempotency({ ...preset, store: memoryStore({ clock }), clock });
  let runs = 0;
  const work = () => ++runs;
  const failing = () => {
    runs += 1;
    throw Object.assign(new Error("The card network broke off"), { code: "NETWORK" });
  };
  return { clock, idempotency, work, failing, runs: () => runs };
}

describe.each([
  ["ietf", ietf],
  ["stripe", stripe],
] as const)("%s", (_, preset) => {
  it("replays what is completed, and refuses other input", async () => {
    const { idempotency, work } = setUp(preset);
    expect(await idempotency.run(charge, work)).toBe(1);
    expect(await idempotency.run(charge, work)).toBe(1);
    const other = idempotency.run({ ...charge, input: { amount: 11 } }, work);
    await expect(other).rejects.toMatchObject({ code: "KEY_REUSED", status: 422 });
  });

  it("refuses a repeat of what is in flight at once", async () => {
    const { idempotency } = setUp(preset);
    const first = gate();
    const running = idempotency.run(charge, () => first.opened);
    const repeat = idempotency.run(charge, () => "again");
    await expect(repeat).rejects.toMatchObject({ code: "IN_FLIGHT", status: 409, retryable: true });
    first.open("done");
    expect(await running).toBe("done");
  });

  it("gives way to what is written after it", async () => {
    const clock = manualClock();
    const idempotency = createIdempotency({ ...preset, store: memoryStore({ clock }), clock });
    const first = gate();
    const running = idempotency.run(charge, () => first.opened);
    const waiting = idempotency.run({ ...charge, onInFlight: { waitMs: 1_000 } }, () => "again");
    first.open("done");
    expect(await running).toBe("done");
    expect(await waiting).toBe("done");
  });

  it("keeps a result for a day", async () => {
    const { clock, idempotency, work } = setUp(preset);
    await idempotency.run(charge, work);
    await clock.advance(86_399_000);
    expect(await idempotency.run(charge, work)).toBe(1);
    await clock.advance(1_001);
    expect(await idempotency.run(charge, work)).toBe(2);
  });
});

describe("a failure", () => {
  it("frees the key under ietf", async () => {
    const { idempotency, work, failing, runs } = setUp(ietf);
    await expect(idempotency.run(charge, failing)).rejects.toThrow("broke off");
    expect(await idempotency.run(charge, work)).toBe(2);
    expect(runs()).toBe(2);
  });

  it("is the result under stripe", async () => {
    const { idempotency, failing, runs } = setUp(stripe);
    await expect(idempotency.run(charge, failing)).rejects.toThrow("broke off");
    const repeat = idempotency.run(charge, failing);
    await expect(repeat).rejects.toBeInstanceOf(ReplayedError);
    await expect(repeat).rejects.toMatchObject({ code: "NETWORK" });
    expect(runs()).toBe(1);
  });

  it("frees the key under stripe if nothing was performed", async () => {
    const { idempotency, work } = setUp(stripe);
    const refused = idempotency.run(charge, () => {
      throw notPerformed("The card network refused the connection");
    });
    await expect(refused).rejects.toMatchObject({ code: "NOT_PERFORMED" });
    expect(await idempotency.run(charge, work)).toBe(1);
  });
});

describe("an answer", () => {
  const keptBy = (status: number) => stripe.keep({ kind: "answered", status, headers: [] });

  it.each([200, 201, 303, 400, 402, 403, 404, 409, 422, 500, 502, 503])(
    "of %i is kept under stripe",
    (status) => {
      expect(keptBy(status)).toBe(true);
    },
  );

  it.each([401, 407, 421, 429])("of %i is not kept under stripe: the work did not begin", (status) => {
    expect(keptBy(status)).toBe(false);
  });
});
