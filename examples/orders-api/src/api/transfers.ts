/**
 * @module
 * `POST /transfers`, at-most-once: for a provider that would move the money again, but can be asked whether it has.
 *
 * A crash in the middle leaves an outcome that nobody knows. The key is held, and the next repeat has `reconcile` find
 * out: money that has moved is answered for, and money that has not is moved now.
 */
import { Router } from "express";
import type { Reconcile } from "oncekey";
import { idempotent } from "oncekey/http/express";
import type { Movement } from "../provider/ledger.js";
import { customerOf, type Purchase, purchaseOf, type Shop } from "./shop.js";

export function transfers({ idempotency, orders, provider }: Shop): Router {
  const router = Router();

  const onLapsed: Reconcile = async (record) => {
    const moved = await provider.find(record.downstreamKey("provider"));
    if (moved === undefined) return { kind: "not-done" };
    return { kind: "done", result: { status: 201, body: await settle(moved, moved.id) } };
  };

  const protection = idempotent(idempotency, { guarantee: "at-most-once", onLapsed, scope: customerOf });
  router.post("/transfers", protection, async (req, res) => {
    const purchase = purchaseOf(req);
    const { downstreamKey, signal } = idempotency.workOf(req);

    const request = { ...purchase, reference: downstreamKey("provider") };
    const { id } = await provider.transfer(request, { signal });

    res.status(201).json(await settle(purchase, id));
  });

  /** Whoever learns that the money has moved does the rest: the handler, or a reconciler after a crash. */
  async function settle({ customer, item, amount }: Purchase | Movement, payment: string) {
    const order = { customer, item, amount, payment };
    await orders.add(order);
    return order;
  }

  return router;
}
