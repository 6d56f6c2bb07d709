/**
 * @module
 * The application: who is asking, then the routes, then what becomes of errors.
 */
import express, { type ErrorRequestHandler, type Express, type RequestHandler } from "express";
import { orders } from "./orders.js";
import { payments } from "./payments.js";
import { ProviderError } from "./provider.js";
import { BadRequest, customerOf, type Shop } from "./shop.js";
import { transfers } from "./transfers.js";
import { unprotected } from "./unprotected.js";

export function createApp(shop: Shop): Express {
  const app = express();
  app.use(authenticate, express.json());
  app.use(payments(shop), transfers(shop), orders(shop), unprotected(shop));
  app.use(renderErrors);
  return app;
}

/** Before everything: an answer that says "not you" is no answer to the key. */
const authenticate: RequestHandler = (req, res, next) => {
  if (customerOf(req) !== undefined) return next();
  res
    .status(401)
    .set("WWW-Authenticate", "Bearer")
    .json({ error: "Say who you are: Authorization: Bearer alice" });
};

/** 502 tells the client to try again, and oncekey that the attempt failed: the key is free for the retry. */
const renderErrors: ErrorRequestHandler = (error: unknown, _req, res, next) => {
  if (error instanceof BadRequest) res.status(400).json({ error: error.message });
  else if (error instanceof ProviderError) res.status(502).json({ error: error.message });
  else next(error);
};
