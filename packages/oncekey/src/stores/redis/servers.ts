/**
 * @module
 * What is known of the servers that hold the records, looked at again whenever there is a new connection.
 *
 * Invariants: one look at a time, and one more if something changed meanwhile; what was found is told once; a claim that depends
 * on it waits for the look that is under way.
 */
import type { StoreTraits } from "../../core/store.js";
import type { Notices } from "../notices.js";
import type { RedisConnection } from "./driver.js";
import type { DurabilityOptions } from "./durability.js";
import { inspect, type ServerFacts, traitsOf, UNKNOWN_TRAITS, warningsOf } from "./server.js";
import type { Succession } from "./succession.js";

export interface Servers {
  traits(): StoreTraits;
  /** Looks at them; resolves when what is known is no older than this call. Never rejects. */
  look(): Promise<void>;
}

export interface ServersOptions {
  readonly connection: () => RedisConnection;
  readonly replicated: boolean;
  readonly durability: DurabilityOptions;
  readonly succession: Succession;
  readonly notices: Notices;
}

export function watchServers(options: ServersOptions): Servers {
  const { connection, replicated, durability, succession, notices } = options;
  let traits = UNKNOWN_TRAITS;
  let current: Promise<void> | undefined;
  let next: Promise<void> | undefined;

  async function lookNow(): Promise<void> {
    try {
      const nodes = await connection().nodes();
      const facts = (await Promise.all(nodes.map(inspect))).filter(({ answered }) => answered);
      // If nobody has answered, whoever connects next looks again.
      if (facts.length > 0) conclude(facts);
    } catch {
      // The nodes of a cluster are not known at the moment.
    }
    current = undefined;
  }

  function look(): Promise<void> {
    if (current === undefined) {
      current = lookNow();
      return current;
    }
    next ??= current.then(() => {
      next = undefined;
      return look();
    });
    return next;
  }

  function conclude(facts: readonly ServerFacts[]): void {
    traits = traitsOf(facts, replicated, durability);
    for (const text of warningsOf(facts, durability)) notices.tell({ kind: "warning", text });
    if (succession.seen(facts.map(({ runId }) => runId)) === "replaced") {
      notices.tell({ kind: "server-replaced", text: REPLACED });
    }
  }

  return { traits: () => traits, look };
}

const REPLACED =
  "Another server answers than before: it was restarted, or a replica has taken its place. It may have lost the last claims and completions";
