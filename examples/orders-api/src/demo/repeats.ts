/**
 * @module
 * Scenes in which a key comes more than once.
 */
import { bodyOf, counted, differences, type Scene, shown, tally } from "./scene.js";

const REPEATS = 20;

export const atOnce: Scene = {
  number: "2",
  happens: `${REPEATS} repeats at once`,
  async play({ provider, customer }) {
    const bob = customer("bob");
    const order = { key: "order-1", item: "bike", amount: 90_000 };
    // Slow enough that all of them arrive while the first is running.
    await provider.behave({ answerAfterMs: 200 });

    const answers = await Promise.all(Array.from({ length: REPEATS }, () => bob.send("/payments", order)));

    await provider.behave({});
    const ledger = await provider.ledgerOf(bob);
    return {
      clientSaw: tally(answers.toSorted((a, b) => shown(a).length - shown(b).length)),
      providerCounted: counted(ledger),
      verdict: "charged once",
      wrong: differences({
        "answers of the first": [answers.filter((answer) => shown(answer) === "201").length, 1],
        replays: [answers.filter((answer) => shown(answer) === "201 replayed").length, REPEATS - 1],
        "different bodies": [new Set(answers.map(bodyOf)).size, 1],
        "the charges": [ledger.length, 1],
        "the requests to the provider": [ledger[0]?.asked, 1],
      }),
    };
  },
};

export const anotherAmount: Scene = {
  number: "3",
  happens: "same key, another amount",
  async play({ provider, customer }) {
    const carol = customer("carol");
    const first = await carol.send("/payments", { key: "order-1", item: "chair", amount: 5_000 });
    const second = await carol.send("/payments", { key: "order-1", item: "chair", amount: 7_500 });
    const ledger = await provider.ledgerOf(carol);
    return {
      clientSaw: `${shown(first)}, then ${shown(second)}`,
      providerCounted: counted(ledger),
      verdict: "refused",
      wrong: differences({
        "the answers": [
          [shown(first), shown(second)],
          ["201", "422 KEY_REUSED"],
        ],
        "the amounts": [ledger.map(({ amount }) => amount), [5_000]],
      }),
    };
  },
};

export const twoCustomers: Scene = {
  number: "4",
  happens: "two customers, same key, same order",
  async play({ provider, customer }) {
    const [dave, erin] = [customer("dave"), customer("erin")];
    const order = { key: "order-1", item: "book", amount: 1_900 };
    const answers = [await dave.send("/payments", order), await erin.send("/payments", order)];
    const ledgers = [await provider.ledgerOf(dave), await provider.ledgerOf(erin)];
    const payments = ledgers.map((ledger) => ledger.map(({ id }) => id));
    return {
      clientSaw: answers.map(shown).join(" and "),
      providerCounted: counted(ledgers.flat()),
      verdict: "one each",
      wrong: differences({
        "the answers": [answers.map(shown), ["201", "201"]],
        "their payments": [answers.map((answer) => [paymentIn(bodyOf(answer))]), payments],
        "the charges of each": [ledgers.map(({ length }) => length), [1, 1]],
      }),
    };
  },
};

function paymentIn(body = "{}"): unknown {
  return (JSON.parse(body) as { readonly payment?: unknown }).payment;
}

export const providerFails: Scene = {
  number: "5",
  happens: "provider fails, client retries",
  async play({ provider, customer }) {
    const frank = customer("frank");
    const order = { key: "order-1", item: "desk", amount: 30_000 };
    await provider.behave({ refuseNext: 1 });
    const answers = [];
    for (let times = 0; times < 3; times += 1) answers.push(await frank.send("/payments", order));
    const ledger = await provider.ledgerOf(frank);
    return {
      clientSaw: answers.map(shown).join(", "),
      providerCounted: counted(ledger),
      verdict: "charged once",
      wrong: differences({
        "the answers": [answers.map(shown), ["502", "201", "201 replayed"]],
        "the charges": [ledger.length, 1],
      }),
    };
  },
};
