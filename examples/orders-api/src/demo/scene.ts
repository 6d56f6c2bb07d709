/**
 * @module
 * What a scene is: something that goes wrong, and what everybody must have seen afterwards.
 */
import { isDeepStrictEqual } from "node:util";
import type { Movement } from "../provider/ledger.js";
import type { Answer } from "./client.js";
import { type Stage, timesAsked } from "./stage.js";

export interface Scene {
  readonly number: string;
  readonly happens: string;
  /** It shows what is wrong without oncekey, and so it should. */
  readonly contrast?: true;
  /** @throws Error if the scene could not be played. */
  play(stage: Stage): Promise<Ending>;
}

export interface Ending {
  readonly clientSaw: string;
  readonly providerCounted: string;
  /** What it means, in a word or two. */
  readonly verdict: string;
  /** Everything that is not as it should be. */
  readonly wrong: readonly string[];
}

/** Compares what is with what should be, by name. */
export function differences(
  facts: Readonly<Record<string, readonly [is: unknown, should: unknown]>>,
): readonly string[] {
  return Object.entries(facts)
    .filter(([, [is, should]]) => !isDeepStrictEqual(is, should))
    .map(([name, [is, should]]) => `${name}: ${JSON.stringify(is)} instead of ${JSON.stringify(should)}`);
}

/** An answer in a few characters: `lost`, `201`, `201 replayed`, `422 KEY_REUSED`. */
export function shown(answer: Answer): string {
  if (answer.kind === "lost") return "lost";
  return [answer.status, answer.code, answer.replayed ? "replayed" : undefined].filter(Boolean).join(" ");
}

export function bodyOf(answer: Answer): string | undefined {
  return answer.kind === "answered" ? answer.body : undefined;
}

/** The ledger in a few characters: `1 charge`, `1 charge (asked 2 ×)`. */
export function counted(ledger: readonly Movement[]): string {
  const kind = ledger[0]?.kind ?? "charge";
  const movements = `${ledger.length} ${kind}${ledger.length === 1 ? "" : "s"}`;
  const asked = timesAsked(ledger);
  return asked === ledger.length ? movements : `${movements} (asked ${asked} ×)`;
}
