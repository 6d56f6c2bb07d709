/**
 * @module
 * `POST /orders`, exactly-once: rows of this database that must not be written twice, such as points that are added up.
 *
 * The rows and "this key is done" commit in one transaction. A crash leaves both or neither, and a retry never has to
 * guess. It is a promise about the rows alone: the provider still needs its downstream key.
 */
import { Router } from "express";
import { idempotent } from "oncekey/http/express";
import { ADD_ORDER, ADD_POINTS } from "./database.js";
import { customerOf, purchaseOf, type Shop } from "./shop.js";

export function orders({ idempotency, orders, provider }: Shop): Router {
  const router = Router();

  const protection = idempotent(idempotency, { guarantee: "exactly-once", scope: customerOf });
  router.post("/orders", protection, async (req, res) => {
    const purchase = purchaseOf(req);
    const { customer, item, amount } = purchase;
    const { downstreamKey, signal, transaction } = idempotency.workOf(req, "exactly-once");
    const reference = downstreamKey("provider");

    // The outside world first: a transaction that waits for somebody else's answer holds up every other write.
    const { id } = await provider.charge({ ...purchase, reference }, { idempotencyKey: reference, signal });
    await transaction.run(ADD_ORDER, [id, customer, item, amount]);
    await transaction.run(ADD_POINTS, [customer, amount]);

    // It commits when the answer ends, and only then does the answer leave.
    res.status(201).json({ ...purchase, payment: id, points: amount });
  });

  router.get("/orders", (req, res) => {
    const customer = customerOf(req) ?? "";
    res.json({ orders: orders.of(customer), points: orders.pointsOf(customer) });
  });

  return router;
}
