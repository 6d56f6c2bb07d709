/**
 * @module
 * Waiting until others have what was written: `WAIT` for replicas, `WAITAOF` for disks.
 *
 * Both count what their own connection has written before them, so they are sent right behind the write, on the same one.
 * Invariant: what was not confirmed in time is not acknowledged: the call fails, although it has landed, and asked again with
 * its token it waits again.
 */
import { OncekeyError } from "../../core/errors.js";
import type { RedisCommand, RedisConnection, RedisReply } from "./driver.js";

/** How much has to be confirmed before a claim, a renewal or a completion is acknowledged. */
export interface DurabilityOptions {
  /** `WAIT`: so many replicas have it, within `timeoutMs`. */
  readonly wait?: { readonly replicas: number; readonly timeoutMs: number } | undefined;
  /** `WAITAOF` (Redis 7.2 and later): the disks of the primary (`local: 1`) and of so many replicas have it. */
  readonly waitAof?:
    | { readonly local: 0 | 1; readonly replicas: number; readonly timeoutMs: number }
    | undefined;
}

/** Sends a command, and answers when what it wrote is confirmed. `wrote` tells from its reply whether it wrote at all. */
export type SendConfirmed = (
  name: string,
  command: RedisCommand,
  wrote: (reply: RedisReply) => boolean,
) => Promise<RedisReply>;

interface Check {
  readonly command: RedisCommand;
  readonly wanted: readonly number[];
}

export function sendConfirmed(connection: RedisConnection, options: DurabilityOptions): SendConfirmed {
  const checks = checksOf(options);
  if (checks.length === 0) return (name, command) => connection.send(name, command);
  return async (name, command, wrote) => {
    const answer = connection.send(name, command);
    const confirmations = Promise.all(checks.map((check) => connection.sendBeside(name, check.command)));
    // Whichever fails first, nobody is left unheard.
    confirmations.catch(() => undefined);
    const reply = await answer;
    if (wrote(reply)) requireAll(checks, await confirmations);
    return reply;
  };
}

function checksOf({ wait, waitAof }: DurabilityOptions): readonly Check[] {
  const checks: Check[] = [];
  if (wait !== undefined) {
    checks.push({
      command: ["WAIT", String(wait.replicas), String(wait.timeoutMs)],
      wanted: [wait.replicas],
    });
  }
  if (waitAof !== undefined) {
    const { local, replicas, timeoutMs } = waitAof;
    checks.push({
      command: ["WAITAOF", String(local), String(replicas), String(timeoutMs)],
      wanted: [local, replicas],
    });
  }
  return checks;
}

function requireAll(checks: readonly Check[], replies: readonly RedisReply[]): void {
  for (const [index, { command, wanted }] of checks.entries()) {
    const confirmed = [replies[index]].flat().map(Number);
    const missing = wanted.some((count, place) => (confirmed[place] ?? 0) < count);
    if (missing) throw unconfirmed(command[0], confirmed);
  }
}

function unconfirmed(name: string, confirmed: readonly number[]): OncekeyError<"STORE_UNAVAILABLE"> {
  const message = `${name} was confirmed by ${confirmed.join(" and ")} only. It is written, and may be lost with its server; try again.`;
  return new OncekeyError("STORE_UNAVAILABLE", message, { retryAfterMs: 1_000 });
}
