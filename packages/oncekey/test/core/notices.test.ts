import { createIdempotency, type IdempotencyEvent, type Store, type StoreNotice } from "oncekey";
import { memoryStore } from "oncekey/stores/memory";
import { expect, it } from "vitest";

it("what the store notices by itself is an event, from the start to the end of the instance", async () => {
  let tell: (notice: StoreNotice) => void = () => undefined;
  let closed = 0;
  const store: Store<never> = {
    ...memoryStore(),
    notices(listen) {
      tell = listen;
      listen({ kind: "warning", text: "found before the instance was made" });
      return {
        close() {
          closed += 1;
        },
      };
    },
  };
  const events: IdempotencyEvent[] = [];
  const idempotency = createIdempotency({ store, onEvent: (event) => events.push(event) });
  tell({ kind: "server-replaced", text: "a replica was promoted" });
  expect(events.filter(({ type }) => type === "warning" || type === "store-replaced")).toEqual([
    { type: "warning", text: "found before the instance was made" },
    { type: "store-replaced", text: "a replica was promoted" },
  ]);
  await idempotency.close();
  expect(closed).toBe(1);
});
