/**
 * @module
 * What every route of the shop is given, and how it reads a request.
 */
import type { Request } from "express";
import type { Idempotency } from "oncekey";
import type { SqliteTransaction } from "oncekey/stores/sqlite";
import type { Orders } from "./database.js";
import type { Provider } from "./provider.js";

export interface Shop {
  readonly idempotency: Idempotency<SqliteTransaction>;
  readonly orders: Orders;
  readonly provider: Provider;
}

/** What a customer wants to buy, for how many cents. */
export interface Purchase {
  readonly customer: string;
  readonly item: string;
  readonly amount: number;
}

/** A request that cannot be served as it is. */
export class BadRequest extends Error {
  override readonly name = "BadRequest";
}

/**
 * Who is asking. A real service verifies a token here; this one believes `Authorization: Bearer alice`.
 * The same function is the scope of the idempotency keys: two customers can use the same key and never meet.
 */
export function customerOf(req: Request): string | undefined {
  return /^Bearer ([\w-]{1,40})$/.exec(req.header("Authorization") ?? "")?.[1];
}

/** @throws BadRequest */
export function purchaseOf(req: Request): Purchase {
  const { item, amount } = (req.body ?? {}) as { readonly item?: unknown; readonly amount?: unknown };
  const customer = customerOf(req);
  if (customer === undefined) throw new BadRequest("Nobody is asking.");
  if (typeof item !== "string" || item === "") throw new BadRequest("item must be a text.");
  if (!Number.isSafeInteger(amount) || (amount as number) <= 0) {
    throw new BadRequest("amount must be a positive number of cents.");
  }
  return { customer, item, amount: amount as number };
}
