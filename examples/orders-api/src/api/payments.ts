/**
 * @module
 * `POST /payments`, at-least-once: the default, and the right choice wherever the other side honours a key of its own.
 *
 * A crash in the middle runs the work again, and asks the provider again: with the same downstream key, so that it
 * recognises the charge. What is written here must bear being written twice as well.
 */
import { Router } from "express";
import { idempotent } from "oncekey/http/express";
import { customerOf, purchaseOf, type Shop } from "./shop.js";

export function payments({ idempotency, orders, provider }: Shop): Router {
  const router = Router();

  router.post("/payments", idempotent(idempotency, { scope: customerOf }), async (req, res) => {
    const purchase = purchaseOf(req);
    const { downstreamKey, signal } = idempotency.workOf(req);
    const reference = downstreamKey("provider");

    const { id } = await provider.charge({ ...purchase, reference }, { idempotencyKey: reference, signal });
    await orders.add({ ...purchase, payment: id });

    res.status(201).json({ ...purchase, payment: id });
  });

  return router;
}
