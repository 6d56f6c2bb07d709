/**
 * @module
 * The payment provider, as the API sees it: over HTTP, with time-outs, and with errors that say what is known.
 */
import type { Movement, MovementRequest } from "../provider/ledger.js";

export interface Provider {
  /** Charges a card. With the same `idempotencyKey` it is charged once. */
  charge(
    request: MovementRequest,
    options: CallOptions & { readonly idempotencyKey?: string },
  ): Promise<Receipt>;
  /** Moves money from an account, as often as it is called. */
  transfer(request: MovementRequest, options: CallOptions): Promise<Receipt>;
  /** Whether money was moved under this reference. */
  find(reference: string): Promise<Movement | undefined>;
}

export interface Receipt {
  readonly id: string;
}

interface CallOptions {
  /** Ends the call, when there is no point in it any more. */
  readonly signal?: AbortSignal;
}

/** The provider failed or did not answer. Money may have moved. */
export class ProviderError extends Error {
  override readonly name = "ProviderError";
}

const TIMEOUT_MS = 10_000;

export function providerAt(url: string): Provider {
  return {
    charge: (request, { idempotencyKey, signal }) =>
      post(
        "/charges",
        request,
        signal,
        idempotencyKey === undefined ? {} : { "Idempotency-Key": idempotencyKey },
      ),
    transfer: (request, { signal }) => post("/transfers", request, signal, {}),
    async find(reference) {
      const answer = await call(`/movements/${reference}`, {});
      if (answer.status === 404) return undefined;
      return (await dataOf(answer)) as Movement;
    },
  };

  async function post(
    path: string,
    request: MovementRequest,
    signal: AbortSignal | undefined,
    headers: Readonly<Record<string, string>>,
  ): Promise<Receipt> {
    const answer = await call(path, {
      method: "POST",
      headers: { "Content-Type": "application/json", ...headers },
      body: JSON.stringify(request),
      ...(signal && { signal }),
    });
    return (await dataOf(answer)) as Receipt;
  }

  async function call(path: string, { signal, ...init }: RequestInit): Promise<Response> {
    const timeout = AbortSignal.timeout(TIMEOUT_MS);
    const ends = signal ? AbortSignal.any([signal, timeout]) : timeout;
    try {
      return await fetch(url + path, { ...init, signal: ends });
    } catch (cause) {
      throw new ProviderError("The provider did not answer.", { cause });
    }
  }
}

/** Whatever is no success is no receipt, also what one does not expect: an order is never written for a refused card. */
async function dataOf(answer: Response): Promise<unknown> {
  if (!answer.ok) throw new ProviderError(`The provider answered ${answer.status}.`);
  return answer.json();
}
