/**
 * @module
 * What the provider is asked, what it writes down, and how it can be made to misbehave.
 */

export interface MovementRequest {
  readonly customer: string;
  readonly item: string;
  /** Cents. */
  readonly amount: number;
  /** The client's name for it, to ask about it later. */
  readonly reference: string;
}

/** Money that was moved. */
export interface Movement extends MovementRequest {
  readonly id: string;
  readonly kind: "charge" | "transfer";
  readonly idempotencyKey: string | undefined;
  /** How many requests it answered: 2 means that a repeat was recognised. */
  asked: number;
}

export interface Behaviour {
  /** So many requests are answered 503, and no money moves. */
  readonly refuseNext: number;
  /** So many requests are lost on their way: no money moves, and no answer comes. */
  readonly loseNext: number;
  /** Answers leave one by one, so far apart. The money has moved before. */
  readonly answerAfterMs: number;
  /** So many answers leave, and the others wait for another behaviour. Without it all of them leave. */
  readonly answersLeft?: number | undefined;
}
