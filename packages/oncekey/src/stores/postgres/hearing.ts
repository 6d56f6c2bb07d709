/**
 * @module
 * Hearing what other processes say, on one connection that goes to the server itself.
 *
 * Through a pooler in transaction mode `LISTEN` succeeds and nothing is ever heard, so a first message of one's own has to
 * arrive. Invariant: without it nothing is lost but promptness; waiters read from time to time, and a warning says so.
 */
import { systemClock } from "../../core/clock.js";
import type { Notices } from "../notices.js";
import { arrayOf } from "./codec.js";
import { optionsOf, type RunStatement } from "./connections.js";
import type { Listening } from "./driver.js";
import type { Settings } from "./options.js";
import type { Tables } from "./schema.js";
import type { Statements } from "./statements.js";
import type { Watchers } from "./watch.js";

export interface HearingOptions {
  readonly settings: Settings;
  readonly tables: Tables;
  readonly statements: Statements;
  readonly run: RunStatement;
  readonly watchers: Watchers;
  readonly notices: Notices;
}

export interface Hearing {
  /**
   * Begins to listen, once the database can be used. Resolves when it listens or cannot, or after a moment: then it goes on in
   * the background, and wakes whoever has begun to wait meanwhile.
   */
  start(): Promise<void>;
  close(): Promise<void>;
}

/** Begins a message that is no key. */
const PROBE = "?";

export function createHearing(options: HearingOptions): Hearing {
  let starting: Promise<Listening | undefined> | undefined;
  return {
    async start() {
      if (options.settings.listen === undefined) return;
      await new Promise<void>((begun) => {
        systemClock.setTimer(begun, A_MOMENT_MS, false);
        starting ??= listen(options, begun).finally(begun);
      });
    },
    async close() {
      await (await starting)?.close();
    },
  };
}

/** How long the first call waits for it. */
const A_MOMENT_MS = 250;

async function listen(options: HearingOptions, begun: () => void): Promise<Listening | undefined> {
  const { settings, tables, watchers, notices } = options;
  const probe = createProbe(options);
  let listening: Listening | undefined;
  try {
    listening = await settings.listen?.listen(optionsOf(settings, "listen"), tables.channel, {
      listening() {
        watchers.wakeEverybody();
        begun();
      },
      heard(payload) {
        if (payload.startsWith(PROBE)) probe.heard(payload);
        else watchers.heard(payload);
      },
    });
    if (await probe.arrives()) return listening;
    notices.tell({ kind: "warning", text: DEAF });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    notices.tell({ kind: "warning", text: `${NOT_LISTENING} (${why})` });
  }
  // It is none of the store's pool: nobody else would end it, and it would keep the process alive.
  await listening?.close();
  return undefined;
}

function createProbe({ settings, statements, run }: HearingOptions) {
  const message = `${PROBE}${crypto.randomUUID()}`;
  let heard: () => void = () => undefined;
  const arrival = new Promise<boolean>((resolve) => {
    heard = () => resolve(true);
  });
  return {
    heard(payload: string): void {
      if (payload === message) heard();
    },
    async arrives(): Promise<boolean> {
      await run(statements.notify, [arrayOf([message])]);
      const timeout = new Promise<boolean>((resolve) => {
        systemClock.setTimer(() => resolve(false), settings.timeoutMs, false);
      });
      return Promise.race([arrival, timeout]);
    },
  };
}

const NOT_LISTENING =
  "The store cannot listen for what other processes complete; their waiters hear of it with a delay";
const DEAF = `${NOT_LISTENING}: LISTEN succeeds and nothing arrives. Through a pooler, set pooler: true and give listen a driver that leads to the server itself`;
