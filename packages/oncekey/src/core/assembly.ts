/**
 * @module
 * Puts the parts of an instance together, and takes them apart again.
 *
 * Invariant: tokens are unique for ever; `closeEngine` starts nothing, releases nothing, and ends within its grace.
 */
import { createBackground } from "./background.js";
import { createCalls } from "./calls.js";
import { createClaiming } from "./claiming.js";
import type { Clock } from "./clock.js";
import type { Engine } from "./engine.js";
import type { EventListener } from "./events.js";
import type { Limits } from "./limits.js";
import type { ClaimToken } from "./record.js";
import { createSchedule } from "./schedule.js";
import { createSettlement } from "./settlement.js";
import { stepRunner } from "./steps.js";
import type { Store } from "./store.js";
import { createWaiting } from "./waiting.js";

/** What `close` could not finish: claims left to lapse, completions that did not reach the store. */
export interface CloseReport {
  readonly unfinishedWork: number;
  readonly unlandedCompletions: number;
}

export interface EngineOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly limits: Limits;
  readonly emit: EventListener;
  readonly waitUntil: ((promise: Promise<unknown>) => void) | undefined;
}

/** Puts the parts together. */
export function createEngine({ store, clock, limits, emit, waitUntil }: EngineOptions): Engine {
  const beats = createSchedule(clock, false);
  const waits = createSchedule(clock, true);
  // Not of those that keep the process running: those set a timer of the platform for each call, which costs more than the call.
  const calls = createCalls(beats, emit);
  const { maxPendingCompletions, maxAbandonedClaims, maxPendingBytes: maxBytes } = limits;
  const completions = createBackground(clock, { maxTasks: maxPendingCompletions, maxBytes, waitUntil });
  const letGo = createBackground(clock, { maxTasks: maxAbandonedClaims, maxBytes, waitUntil });
  const notices = store.notices?.(({ kind, text }) =>
    emit({ type: kind === "warning" ? "warning" : "store-replaced", text }),
  );
  const engine: Engine = {
    store,
    clock,
    calls,
    beats,
    emit,
    completions,
    letGo,
    claiming: createClaiming({ store, calls, background: letGo, emit }),
    settlement: createSettlement({ store, calls, completions, letGo, emit }),
    waiting: createWaiting({ store, calls, waits, limits, nowMs: () => clock.monotonicMs() }),
    here: new Map(),
    mint: createMint(),
    runStep: stepRunner(() => engine),
    notices,
    closing: false,
    whenIdle: undefined,
  };
  return engine;
}

/** Unique for ever: a random name of this process's life, and a count. */
function createMint(): () => ClaimToken {
  const life = crypto.randomUUID().replaceAll("-", "");
  let count = 0;
  return () => {
    count += 1;
    // Joined it is one text in memory. A template makes a tree of its parts, which a store in this process would keep.
    return [life, count.toString(36)].join("-") as ClaimToken;
  };
}

/** Running work first, then what is still being settled; both within the one grace period. */
export async function closeEngine(engine: Engine, graceMs: number): Promise<CloseReport> {
  const endsMs = engine.clock.monotonicMs() + graceMs;
  engine.closing = true;
  engine.waiting.close();
  if (engine.here.size > 0) {
    await new Promise<void>((done) => {
      const timer = engine.clock.setTimer(done, graceMs);
      engine.whenIdle = () => {
        timer.cancel();
        done();
      };
    });
  }
  const restMs = Math.max(0, endsMs - engine.clock.monotonicMs());
  const [unlandedCompletions] = await Promise.all([
    engine.completions.close(restMs),
    engine.letGo.close(restMs),
  ]);
  engine.notices?.close();
  return { unfinishedWork: engine.here.size, unlandedCompletions };
}
