/**
 * @module
 * Events of an instance, kept for a test to look at.
 */
import type { EventListener, IdempotencyEvent } from "../core/events.js";

type EventOf<Type extends IdempotencyEvent["type"]> = Extract<IdempotencyEvent, { readonly type: Type }>;

export interface RecordedEvents {
  /** Give it as `onEvent`. */
  readonly listener: EventListener;
  /** All events so far, in order. */
  readonly all: readonly IdempotencyEvent[];
  /** Those of one type. */
  of<Type extends IdempotencyEvent["type"]>(type: Type): readonly EventOf<Type>[];
  /** The types alone, in order. */
  types(): readonly IdempotencyEvent["type"][];
  clear(): void;
}

/**
 * Keeps the events of an instance.
 *
 * @example
 * const events = recordEvents();
 * const idempotency = createIdempotency({ store, onEvent: events.listener });
 */
export function recordEvents(): RecordedEvents {
  const all: IdempotencyEvent[] = [];
  return {
    listener: (event) => void all.push(event),
    all,
    of: <Type extends IdempotencyEvent["type"]>(type: Type) =>
      all.filter((event): event is EventOf<Type> => event.type === type),
    types: () => all.map(({ type }) => type),
    clear() {
      all.length = 0;
    },
  };
}
