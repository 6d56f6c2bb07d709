/**
 * @module
 * A customer with an HTTP client: it can leave before the answer, lose it, and try again as it was told.
 * Each request has a connection of its own, so that losing one loses nothing else.
 */
import { type IncomingMessage, request } from "node:http";
import { text } from "node:stream/consumers";

export interface Order {
  /** What the client sends as `Idempotency-Key`. */
  readonly key: string;
  readonly item: string;
  /** Cents. */
  readonly amount: number;
}

/** What the client learns of its request. `lost`: the connection ended first. */
export type Answer =
  | {
      readonly kind: "answered";
      readonly status: number;
      /** The code of a refusal. */
      readonly code: string | undefined;
      readonly replayed: boolean;
      readonly body: string;
      readonly retryAfterMs: number | undefined;
    }
  | { readonly kind: "lost" };

export interface Customer {
  readonly name: string;
  /**
   * Sends it, and again for as long as the answer is "not yet" (`Retry-After`).
   * `signal`: hangs up. `url`: another way to the API.
   */
  send(
    path: string,
    order: Order,
    options?: { readonly signal?: AbortSignal; readonly url?: string },
  ): Promise<Answer>;
  /** What the API has in its books. */
  account(): Promise<Account>;
}

export interface Account {
  readonly orders: readonly { readonly item: string; readonly amount: number; readonly payment: string }[];
  readonly points: number;
}

const PATIENCE_MS = 30_000;

/** @param detour sends to another path than the scene says. */
export function createCustomer(
  name: string,
  apiUrl: string,
  detour: (path: string) => string = (path) => path,
): Customer {
  const authorization = { Authorization: `Bearer ${name}` };

  return {
    name,
    async send(path, order, { signal, url = apiUrl } = {}) {
      for (const endsAt = performance.now() + PATIENCE_MS; ; ) {
        const answer = await post(url + detour(path), order, signal);
        const waitMs = answer.kind === "lost" ? undefined : answer.retryAfterMs;
        if (waitMs === undefined || performance.now() + waitMs > endsAt) return answer;
        await new Promise((resolve) => setTimeout(resolve, waitMs));
      }
    },
    async account() {
      const response = await fetch(`${apiUrl}/orders`, { headers: authorization });
      return (await response.json()) as Account;
    },
  };

  function post(url: string, { key, item, amount }: Order, signal: AbortSignal | undefined): Promise<Answer> {
    const headers = { ...authorization, "Content-Type": "application/json", "Idempotency-Key": `"${key}"` };
    const options = { method: "POST", headers, agent: false, ...(signal && { signal }) };
    return new Promise((resolve) => {
      const lost = (): void => resolve({ kind: "lost" });
      request(url, options, (response) => void read(response).then(resolve, lost))
        .once("error", lost)
        .end(JSON.stringify({ item, amount }));
    });
  }
}

/** The provider's name for the payment that an answer tells of. */
export function paymentIn(answer: Answer): string | undefined {
  if (answer.kind === "lost" || answer.status !== 201) return undefined;
  return (JSON.parse(answer.body) as { readonly payment: string }).payment;
}

async function read(response: IncomingMessage): Promise<Answer> {
  const { statusCode: status = 0, headers } = response;
  const body = await text(response);
  const isProblem = headers["content-type"] === "application/problem+json";
  const code = isProblem ? (JSON.parse(body) as { readonly code: string }).code : undefined;
  const seconds = headers["retry-after"];
  return {
    kind: "answered",
    status,
    code,
    body,
    replayed: headers["idempotency-replayed"] === "true",
    retryAfterMs: seconds === undefined ? undefined : Number(seconds) * 1_000,
  };
}
