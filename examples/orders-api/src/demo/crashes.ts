/**
 * @module
 * Scenes in which the API is killed with SIGKILL: no handler runs, no transaction ends, no answer leaves.
 */
import type { Behaviour } from "../provider/ledger.js";
import type { Answer, Customer, Order } from "./client.js";
import { bodyOf, counted, differences, type Scene, shown } from "./scene.js";
import { type ProviderSide, type Stage, timesAsked } from "./stage.js";

/** The provider charges, and does not answer. */
const SILENT: Partial<Behaviour> = { answersLeft: 0 };

/** The second attempt asks the provider again, under the same key: it knows the charge and moves nothing. */
export const killedInCharge = crash({
  number: "7a",
  happens: "killed in a charge (at-least-once)",
  name: "heidi",
  path: "/payments",
  behaviour: SILENT,
  reached: (provider, heidi) => provider.asked(heidi, 1),
  clientSees: "lost, then 201",
  timesAsked: 2,
  verdict: "once: downstream key",
});

/** The provider would move the money again, so it is not told to, but asked whether it has. It has. */
export const killedAfterTransfer = crash({
  number: "7b",
  happens: "killed after a transfer (at-most-once)",
  name: "ivan",
  path: "/transfers",
  behaviour: SILENT,
  reached: (provider, ivan) => provider.asked(ivan, 1),
  clientSees: "lost, then 201 replayed",
  timesAsked: 1,
  verdict: "once: reconciled, done",
});

/** It has not, for the request never arrived: the transfer is made now. */
export const killedBeforeTransfer = crash({
  number: "7c",
  happens: "killed before a transfer (at-most-once)",
  name: "judy",
  path: "/transfers",
  behaviour: { loseNext: 1 },
  reached: (provider) => provider.lostAll(),
  clientSees: "lost, then 201",
  timesAsked: 1,
  verdict: "once: reconciled, not done",
});

interface Crash extends Pick<Scene, "number" | "happens"> {
  readonly name: string;
  readonly path: string;
  readonly behaviour: Partial<Behaviour>;
  /** Settles at the moment at which the API is to be killed. */
  readonly reached: (provider: ProviderSide, customer: Customer) => Promise<void>;
  readonly clientSees: string;
  readonly timesAsked: number;
  readonly verdict: string;
}

function crash({ number, happens, name, path, verdict, ...rest }: Crash): Scene {
  return {
    number,
    happens,
    async play({ customer, provider, killApi, restartApi }) {
      const client = customer(name);
      const order: Order = { key: "order-1", item: "sofa", amount: 120_000 };
      await provider.behave(rest.behaviour);
      const sending = client.send(path, order);
      await rest.reached(provider, client);
      await killApi();
      const sent = await sending;
      await provider.behave({});
      await restartApi();
      const again = await client.send(path, order);

      const clientSaw = `${shown(sent)}, then ${shown(again)}`;
      const ledger = await provider.ledgerOf(client);
      const { orders } = await client.account();
      const wrong = differences({
        "the client saw": [clientSaw, rest.clientSees],
        "movements of money": [ledger.length, 1],
        "requests to the provider": [timesAsked(ledger), rest.timesAsked],
        orders: [orders.length, 1],
      });
      return { clientSaw, providerCounted: counted(ledger), verdict, wrong };
    },
  };
}

const ORDERS = 20;
/** All of them are charged, so many of the charges the API hears of, and so many answers it gets out, when it is killed. */
const CHARGED_BEFORE = 14;
const ANSWERED_BEFORE = 8;
const AMOUNT = 1_000;

/** Points are added up, and no constraint would stop a second helping: only the transaction does. */
export const killedAmongOrders: Scene = {
  number: "7d",
  happens: `killed among ${ORDERS} orders (exactly-once)`,
  async play(stage) {
    const kim = stage.customer("kim");
    const before = await killAmong(stage, kim);
    const after = await Promise.all(orderList().map((order) => kim.send("/orders", order)));

    const ledger = await stage.provider.ledgerOf(kim);
    const { orders, points } = await kim.account();
    const answered = before.filter(({ kind }) => kind === "answered").length;
    const done = after.filter((answer) => answer.kind === "answered" && answer.status === 201).length;
    const kept = before.filter((answer, index) => isSameAnswer(answer, after[index])).length;
    return {
      clientSaw: `${answered} × 201, then ${done} × 201`,
      providerCounted: counted(ledger),
      verdict: `${orders.length} rows, ${points} points`,
      wrong: differences({
        "some were answered, and some were not": [
          answered >= ANSWERED_BEFORE && answered <= CHARGED_BEFORE,
          true,
        ],
        "answered in the end": [done, ORDERS],
        "answers that stayed the same": [kept, answered],
        charges: [ledger.length, ORDERS],
        "some were charged and had no rows": [timesAsked(ledger) >= ORDERS + (ORDERS - CHARGED_BEFORE), true],
        orders: [orders.length, ORDERS],
        points: [points, ORDERS * AMOUNT],
      }),
    };
  },
};

function orderList(): readonly Order[] {
  const numbers = Array.from({ length: ORDERS }, (_, index) => index + 1);
  return numbers.map((number) => ({ key: `order-${number}`, item: `cup ${number}`, amount: AMOUNT }));
}

function isSameAnswer(first: Answer, second: Answer | undefined): boolean {
  return first.kind === "answered" && second?.kind === "answered" && bodyOf(first) === bodyOf(second);
}

/** Kills the API when some of the orders are answered, and the others are anywhere between charge and commit. */
async function killAmong(
  { provider, killApi, restartApi }: Stage,
  customer: Customer,
): Promise<readonly Answer[]> {
  await provider.behave(SILENT);
  let answered = 0;
  let killed: Promise<void> | undefined;
  const sending = orderList().map(async (order) => {
    const answer = await customer.send("/orders", order);
    answered += 1;
    if (answered === ANSWERED_BEFORE) killed = killApi();
    return answer;
  });
  await provider.asked(customer, ORDERS);
  await provider.behave({ answersLeft: CHARGED_BEFORE });
  const answers = await Promise.all(sending);
  await killed;
  await provider.behave({});
  await restartApi();
  return answers;
}
