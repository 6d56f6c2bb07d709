/**
 * @module
 * Scenes in which an answer does not reach its client.
 */
import { lossyNetworkTo } from "./network.js";
import { bodyOf, counted, differences, type Scene, shown } from "./scene.js";
import { timesAsked } from "./stage.js";

/** What everybody has written at some time: no key, and a client that tries again. */
export const withoutOncekey: Scene = {
  ...loseAnswer({
    number: "0",
    happens: "no oncekey: answer lost, client retries",
    name: "nobody",
    path: "/unprotected/payments",
    clientSees: "lost, then 201",
    charges: 2,
    verdict: "charged twice",
  }),
  contrast: true,
};

export const lostAnswer = loseAnswer({
  number: "1",
  happens: "answer lost, client retries",
  name: "alice",
  path: "/payments",
  clientSees: "lost, then 201 replayed",
  charges: 1,
  verdict: "charged once",
});

interface LostAnswer extends Pick<Scene, "number" | "happens"> {
  readonly name: string;
  readonly path: string;
  readonly clientSees: string;
  readonly charges: number;
  readonly verdict: string;
}

/** The network between client and API breaks when the answer comes: everything is done, and the client cannot know. */
function loseAnswer({ number, happens, name, path, clientSees, charges, verdict }: LostAnswer): Scene {
  return {
    number,
    happens,
    async play({ apiUrl, provider, customer }) {
      const client = customer(name);
      const order = { key: "order-1", item: "tea", amount: 4_200 };
      const network = await lossyNetworkTo(apiUrl);
      const sent = await client.send(path, order, { url: network.url }).finally(network.close);
      const again = await client.send(path, order);

      const clientSaw = `${shown(sent)}, then ${shown(again)}`;
      const ledger = await provider.ledgerOf(client);
      const { orders } = await client.account();
      const wrong = differences({
        "the client saw": [clientSaw, clientSees],
        charges: [ledger.length, charges],
        orders: [orders.length, charges],
      });
      return { clientSaw, providerCounted: counted(ledger), verdict, wrong };
    },
  };
}

/** Nobody is there to hear the answer, and the charge goes on: the retry joins it. */
export const clientLeaves: Scene = {
  number: "6",
  happens: "client hangs up in the charge, retries",
  async play({ provider, customer }) {
    const gina = customer("gina");
    const order = { key: "order-1", item: "lamp", amount: 8_000 };
    await provider.behave({ answersLeft: 0 });

    const patience = new AbortController();
    const sending = gina.send("/payments", order, { signal: patience.signal });
    await provider.asked(gina, 1);
    patience.abort();
    const left = await sending;
    const retrying = gina.send("/payments", order);
    await provider.behave({});
    const again = await retrying;
    const later = await gina.send("/payments", order);

    const clientSaw = `${shown(left)}, then ${shown(again)}`;
    const ledger = await provider.ledgerOf(gina);
    const wrong = differences({
      "the client saw": [clientSaw, "lost, then 201 replayed"],
      "the answer to a third": [bodyOf(later), bodyOf(again)],
      charges: [ledger.length, 1],
      "requests to the provider": [timesAsked(ledger), 1],
    });
    return { clientSaw, providerCounted: counted(ledger), verdict: "charged once", wrong };
  },
};
