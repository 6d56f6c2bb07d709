/**
 * @module
 * Things that may not overlap, such as the calls that are made in one transaction: each takes its turn.
 *
 * What is asked for inside a turn is a part of it and does not wait for its end; several such parts take turns among themselves.
 * That is noticed where the platform can follow promises; elsewhere nothing waits. Invariant: the line is bounded, and whoever
 * fails does not hold up the next.
 */
import { createContext } from "#platform";
import { OncekeyError } from "./errors.js";
import { MAX_IN_LINE } from "./limits.js";

export interface Line {
  inTurn<R>(work: () => Promise<R>): Promise<R>;
}

/** A turn that is being taken, and the line of what is asked for inside it. */
interface Turn {
  readonly of: Line;
  readonly outer: Turn | undefined;
  readonly inner: Queue;
  ended: boolean;
}

interface Queue {
  last: Promise<unknown>;
  length: number;
}

const context = createContext<Turn>();

export function createLine(): Line {
  const queue: Queue = { last: Promise.resolve(), length: 0 };
  const line: Line = {
    async inTurn(work) {
      if (context === undefined) return work();
      const outer = context.current();
      const around = turnOf(line, outer);
      return inQueue(around?.inner ?? queue, async () => {
        const turn: Turn = { of: line, outer, inner: { last: Promise.resolve(), length: 0 }, ended: false };
        try {
          return await context.run(turn, work);
        } finally {
          turn.ended = true;
        }
      });
    },
  };
  return line;
}

/** The innermost turn of `line` that the caller is inside of. */
function turnOf(line: Line, from: Turn | undefined): Turn | undefined {
  for (let turn = from; turn !== undefined; turn = turn.outer) {
    if (turn.of === line && !turn.ended) return turn;
  }
  return undefined;
}

async function inQueue<R>(queue: Queue, work: () => Promise<R>): Promise<R> {
  if (queue.length >= MAX_IN_LINE) {
    const message = `More than ${MAX_IN_LINE} calls wait for their turn in one transaction.`;
    throw new OncekeyError("CAPACITY_EXCEEDED", message, { retryAfterMs: 1_000 });
  }
  queue.length += 1;
  const mine = queue.last.then(work, work);
  queue.last = mine.catch(() => undefined);
  try {
    return await mine;
  } finally {
    queue.length -= 1;
  }
}
