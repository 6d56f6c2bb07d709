/**
 * @module
 * The parts that one instance is made of, shared by everything that decides.
 *
 * Invariant: `here` holds what runs in this process, or is about to, one entry per key; an entry is removed only by whoever set it.
 */
import type { Background } from "./background.js";
import type { Calls } from "./calls.js";
import type { Claiming } from "./claiming.js";
import type { Clock } from "./clock.js";
import type { EventListener } from "./events.js";
import type { Fingerprint } from "./fingerprint.js";
import type { ClaimToken, RecordKey } from "./record.js";
import type { Schedule } from "./schedule.js";
import type { Settlement } from "./settlement.js";
import type { Store, Watch } from "./store.js";
import type { Waiting } from "./waiting.js";
import type { RunStep } from "./work.js";

/** What runs, or is about to, in this process. */
export interface Here {
  readonly fingerprint: Fingerprint;
  readonly token: ClaimToken;
  /** The claim is known to have been won. */
  running: boolean;
}

export interface Engine {
  readonly store: Store;
  readonly clock: Clock;
  readonly calls: Calls;
  readonly claiming: Claiming;
  readonly settlement: Settlement;
  readonly waiting: Waiting;
  /** Completions that failed, and are tried again. */
  readonly completions: Background;
  /** Claims that nobody uses any more, and are being released. */
  readonly letGo: Background;
  readonly beats: Schedule;
  readonly emit: EventListener;
  readonly here: Map<RecordKey, Here>;
  readonly mint: () => ClaimToken;
  /** Runs a step of work that runs here. */
  readonly runStep: RunStep;
  /** What the store notices by itself is listened to until the end. */
  readonly notices: Watch | undefined;
  /** Set by `close`: nothing new is claimed. */
  closing: boolean;
  /** Called whenever something that ran here has ended. */
  whenIdle: (() => void) | undefined;
}

/** Takes `mine` out of what runs here, unless another has its place. */
export function leaveHere(engine: Engine, key: RecordKey, mine: Here): void {
  if (engine.here.get(key) !== mine) return;
  engine.here.delete(key);
  if (engine.here.size === 0) engine.whenIdle?.();
}
