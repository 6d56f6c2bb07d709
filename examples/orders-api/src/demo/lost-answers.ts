/**
 * @module
 * Scenes in which an answer does not reach its client.
 */
import { lossyNetworkTo } from "./network.js";
import { bodyOf, counted, differences, type Ending, type Scene, shown } from "./scene.js";
import type { Stage } from "./stage.js";

/** What everybody has done at some time: no key, and a client that tries again. */
export const withoutOncekey: Scene = {
  number: "0",
  happens: "without oncekey: answer lost, client retries",
  contrast: true,
  async play(stage) {
    const { sent, again, ledger, customer } = await loseAnswer(stage, "nobody", "/unprotected/payments");
    const { orders } = await customer.account();
    return {
      clientSaw: `${shown(sent)}, then ${shown(again)}`,
      providerCounted: counted(ledger),
      verdict: "charged twice",
      wrong: differences({
        "the answers": [
          [shown(sent), shown(again)],
          ["lost", "201"],
        ],
        "the charges": [ledger.length, 2],
        "the orders": [orders.length, 2],
      }),
    };
  },
};

export const lostAnswer: Scene = {
  number: "1",
  happens: "answer lost, client retries",
  async play(stage) {
    const { sent, again, ledger, customer } = await loseAnswer(stage, "alice", "/payments");
    const { orders } = await customer.account();
    return {
      clientSaw: `${shown(sent)}, then ${shown(again)}`,
      providerCounted: counted(ledger),
      verdict: "charged once",
      wrong: differences({
        "the answers": [
          [shown(sent), shown(again)],
          ["lost", "201 replayed"],
        ],
        "the charges": [ledger.length, 1],
        "the requests to the provider": [ledger[0]?.asked, 1],
        "the orders": [orders.length, 1],
      }),
    };
  },
};

async function loseAnswer(stage: Stage, name: string, path: string) {
  const customer = stage.customer(name);
  const order = { key: "order-1", item: "tea", amount: 4_200 };
  const network = await lossyNetworkTo(stage.apiUrl);
  try {
    const sent = await customer.send(path, order, { url: network.url });
    const again = await customer.send(path, order);
    return { customer, sent, again, ledger: await stage.provider.ledgerOf(customer) };
  } finally {
    network.close();
  }
}

export const clientLeaves: Scene = {
  number: "6",
  happens: "client hangs up during the charge, retries",
  async play({ provider, customer }): Promise<Ending> {
    const gina = customer("gina");
    const order = { key: "order-1", item: "lamp", amount: 8_000 };
    const patience = new AbortController();
    await provider.behave({ answerAfterMs: 300 });

    const sending = gina.send("/payments", order, { signal: patience.signal });
    await provider.asked(gina, 1);
    patience.abort();
    const left = await sending;
    const again = await gina.send("/payments", order);
    const once = await gina.send("/payments", order);

    await provider.behave({});
    const ledger = await provider.ledgerOf(gina);
    return {
      clientSaw: `${shown(left)}, then ${shown(again)}`,
      providerCounted: counted(ledger),
      verdict: "charged once",
      wrong: differences({
        "the answers": [
          [shown(left), shown(again)],
          ["lost", "201 replayed"],
        ],
        "a third answer": [bodyOf(once), bodyOf(again)],
        "the charges": [ledger.length, 1],
        "the requests to the provider": [ledger[0]?.asked, 1],
      }),
    };
  },
};
