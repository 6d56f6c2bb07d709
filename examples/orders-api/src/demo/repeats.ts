/**
 * @module
 * Scenes in which a key comes more than once.
 */
import { type Answer, type Order, paymentIn } from "./client.js";
import { bodyOf, counted, differences, type Scene, shown } from "./scene.js";
import { timesAsked } from "./stage.js";

const REPEATS = 20;

/** One of them runs, the others wait for its answer. */
export const atOnce: Scene = {
  number: "2",
  happens: `${REPEATS} repeats at once`,
  async play({ provider, customer }) {
    const bob = customer("bob");
    const order: Order = { key: "order-1", item: "bike", amount: 90_000 };
    // Slow enough that all of them arrive while the first is running.
    await provider.behave({ answerAfterMs: 200 });
    const answers = await Promise.all(Array.from({ length: REPEATS }, () => bob.send("/payments", order)));
    await provider.behave({});

    const clientSaw = tally(answers);
    const ledger = await provider.ledgerOf(bob);
    const wrong = differences({
      "the client saw": [clientSaw, `1 × 201, ${REPEATS - 1} × 201 replayed`],
      "different answers": [new Set(answers.map(bodyOf)).size, 1],
      charges: [ledger.length, 1],
      "requests to the provider": [timesAsked(ledger), 1],
    });
    return { clientSaw, providerCounted: counted(ledger), verdict: "charged once", wrong };
  },
};

/** `1 × 201, 19 × 201 replayed` */
function tally(answers: readonly Answer[]): string {
  const all = answers.map(shown).sort();
  const kinds = [...new Set(all)];
  return kinds.map((kind) => `${all.filter((each) => each === kind).length} × ${kind}`).join(", ");
}

export const anotherAmount: Scene = {
  number: "3",
  happens: "same key, another amount",
  async play({ provider, customer }) {
    const carol = customer("carol");
    const first = await carol.send("/payments", { key: "order-1", item: "chair", amount: 5_000 });
    const second = await carol.send("/payments", { key: "order-1", item: "chair", amount: 7_500 });

    const clientSaw = `${shown(first)}, then ${shown(second)}`;
    const ledger = await provider.ledgerOf(carol);
    const wrong = differences({
      "the client saw": [clientSaw, "201, then 422 KEY_REUSED"],
      amounts: [ledger.map(({ amount }) => amount), [5_000]],
    });
    return { clientSaw, providerCounted: counted(ledger), verdict: "refused", wrong };
  },
};

/** Keys are the customer's own: nobody gets somebody else's receipt. */
export const twoCustomers: Scene = {
  number: "4",
  happens: "two customers, same key, same order",
  async play({ provider, customer }) {
    const [dave, erin] = [customer("dave"), customer("erin")];
    const order: Order = { key: "order-1", item: "book", amount: 1_900 };
    const [toDave, toErin] = [await dave.send("/payments", order), await erin.send("/payments", order)];

    const clientSaw = `${shown(toDave)} and ${shown(toErin)}`;
    const [ofDave, ofErin] = [await provider.ledgerOf(dave), await provider.ledgerOf(erin)];
    const wrong = differences({
      "the clients saw": [clientSaw, "201 and 201"],
      "Dave's charges": [ofDave.map(({ id }) => id), [paymentIn(toDave)]],
      "Erin's charges": [ofErin.map(({ id }) => id), [paymentIn(toErin)]],
    });
    return { clientSaw, providerCounted: counted([...ofDave, ...ofErin]), verdict: "one each", wrong };
  },
};

/** A failure is no result: it frees the key, and is not what the retry gets. */
export const providerFails: Scene = {
  number: "5",
  happens: "provider fails, client retries",
  async play({ provider, customer }) {
    const frank = customer("frank");
    const order: Order = { key: "order-1", item: "desk", amount: 30_000 };
    await provider.behave({ refuseNext: 1 });
    const answers: Answer[] = [];
    for (let times = 0; times < 3; times += 1) answers.push(await frank.send("/payments", order));

    const clientSaw = answers.map(shown).join(", ");
    const ledger = await provider.ledgerOf(frank);
    const wrong = differences({
      "the client saw": [clientSaw, "502, 201, 201 replayed"],
      charges: [ledger.length, 1],
    });
    return { clientSaw, providerCounted: counted(ledger), verdict: "charged once", wrong };
  },
};
