/**
 * @module
 * `POST /unprotected/payments`: what one writes without oncekey. It is here so that the demo can show what happens.
 */
import { randomUUID } from "node:crypto";
import { Router } from "express";
import { purchaseOf, type Shop } from "./shop.js";

export function unprotected({ orders, provider }: Shop): Router {
  const router = Router();

  router.post("/unprotected/payments", async (req, res) => {
    const purchase = purchaseOf(req);

    const { id } = await provider.charge({ ...purchase, reference: randomUUID() }, {});
    await orders.add({ ...purchase, payment: id });

    res.status(201).json({ ...purchase, payment: id });
  });

  return router;
}
