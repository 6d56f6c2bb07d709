/**
 * @module
 * Scenes in which the API is killed with SIGKILL: no handler runs, no transaction ends, no answer leaves.
 */
import type { Behaviour } from "../provider/ledger.js";
import type { Answer, Customer, Order } from "./client.js";
import { bodyOf, counted, differences, type Scene, shown } from "./scene.js";
import type { Stage } from "./stage.js";

export const killedInCharge: Scene = {
  number: "7a",
  happens: "killed in a charge (at-least-once)",
  async play(stage) {
    const heidi = stage.customer("heidi");
    const { sent, again } = await killDuring(stage, heidi, "/payments", SILENT, () =>
      stage.provider.asked(heidi, 1),
    );
    const ledger = await stage.provider.ledgerOf(heidi);
    const { orders } = await heidi.account();
    return {
      clientSaw: `${shown(sent)}, then ${shown(again)}`,
      providerCounted: counted(ledger),
      verdict: "charged once: same downstream key",
      wrong: differences({
        "the answers": [
          [shown(sent), shown(again)],
          ["lost", "201"],
        ],
        "the charges": [ledger.length, 1],
        "the requests to the provider": [ledger[0]?.asked, 2],
        "the orders": [orders.length, 1],
      }),
    };
  },
};

export const killedAfterTransfer: Scene = {
  number: "7b",
  happens: "killed after a transfer (at-most-once)",
  async play(stage) {
    const ivan = stage.customer("ivan");
    const { sent, again } = await killDuring(stage, ivan, "/transfers", SILENT, () =>
      stage.provider.asked(ivan, 1),
    );
    const ledger = await stage.provider.ledgerOf(ivan);
    const { orders } = await ivan.account();
    return {
      clientSaw: `${shown(sent)}, then ${shown(again)}`,
      providerCounted: counted(ledger),
      verdict: "moved once: reconciled as done",
      wrong: differences({
        "the answers": [
          [shown(sent), shown(again)],
          ["lost", "201 replayed"],
        ],
        "the transfers": [ledger.length, 1],
        "the requests to the provider": [ledger[0]?.asked, 1],
        "the orders": [orders.length, 1],
      }),
    };
  },
};

export const killedBeforeTransfer: Scene = {
  number: "7c",
  happens: "killed before a transfer (at-most-once)",
  async play(stage) {
    const judy = stage.customer("judy");
    const { sent, again } = await killDuring(stage, judy, "/transfers", { loseNext: 1 }, () =>
      stage.provider.lostAll(),
    );
    const ledger = await stage.provider.ledgerOf(judy);
    const { orders } = await judy.account();
    return {
      clientSaw: `${shown(sent)}, then ${shown(again)}`,
      providerCounted: counted(ledger),
      verdict: "moved once: reconciled as not done",
      wrong: differences({
        "the answers": [
          [shown(sent), shown(again)],
          ["lost", "201"],
        ],
        "the transfers": [ledger.length, 1],
        "the orders": [orders.length, 1],
      }),
    };
  },
};

/** Charges at once and does not answer as long as a scene lasts. */
const SILENT: Partial<Behaviour> = { answerAfterMs: 60_000 };

/** Sends an order, kills the API as soon as `reached` says so, starts it again, and sends the order again. */
async function killDuring(
  { provider, killApi, restartApi }: Stage,
  customer: Customer,
  path: string,
  behaviour: Partial<Behaviour>,
  reached: () => Promise<void>,
): Promise<{ readonly sent: Answer; readonly again: Answer }> {
  const order: Order = { key: "order-1", item: "sofa", amount: 120_000 };
  await provider.behave(behaviour);
  const sending = customer.send(path, order);
  await reached();
  await killApi();
  const sent = await sending;
  await provider.behave({});
  await restartApi();
  return { sent, again: await customer.send(path, order) };
}

const ORDERS = 20;
const ANSWERED_BEFORE = 8;
const AMOUNT = 1_000;

export const killedAmongOrders: Scene = {
  number: "7d",
  happens: `killed among ${ORDERS} orders (exactly-once)`,
  async play(stage) {
    const kim = stage.customer("kim");
    const before = await killAmong(stage, kim);
    const after = await Promise.all(orderList().map((order) => kim.send("/orders", order)));

    const ledger = await stage.provider.ledgerOf(kim);
    const { orders, points } = await kim.account();
    const done = after.filter((answer) => answer.kind === "answered" && answer.status === 201).length;
    const answered = before.filter(({ kind }) => kind === "answered");
    const changed = before.filter(
      (answer, index) => answer.kind === "answered" && bodyOf(answer) !== bodyOf(after[index] ?? answer),
    );
    return {
      clientSaw: `${answered.length} × 201, ${ORDERS - answered.length} lost; then ${done} × 201`,
      providerCounted: counted(ledger),
      verdict: `${orders.length} rows, ${points} points`,
      wrong: differences({
        "answers before, some and not all": [
          answered.length >= ANSWERED_BEFORE && answered.length < ORDERS,
          true,
        ],
        "answers after": [done, ORDERS],
        "answers that changed": [changed.length, 0],
        "the charges": [ledger.length, ORDERS],
        "the orders": [orders.length, ORDERS],
        "the points": [points, ORDERS * AMOUNT],
      }),
    };
  },
};

function orderList(): readonly Order[] {
  return Array.from({ length: ORDERS }, (_, index) => ({
    key: `order-${index + 1}`,
    item: `cup ${index + 1}`,
    amount: AMOUNT,
  }));
}

/** Kills the API when some of the orders are answered, and the others are anywhere between charge and commit. */
async function killAmong(
  { provider, killApi, restartApi }: Stage,
  customer: Customer,
): Promise<readonly Answer[]> {
  await provider.behave({ answerAfterMs: 20 });
  let answered = 0;
  let reached = (): void => undefined;
  const someAnswered = new Promise<void>((resolve) => {
    reached = resolve;
  });
  const sending = orderList().map(async (order) => {
    const answer = await customer.send("/orders", order);
    answered += 1;
    if (answered === ANSWERED_BEFORE) reached();
    return answer;
  });
  await someAnswered;
  await killApi();
  const answers = await Promise.all(sending);
  await provider.behave({});
  await restartApi();
  return answers;
}
