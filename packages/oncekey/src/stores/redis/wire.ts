/**
 * @module
 * Commands and scripts on their way to the server.
 *
 * A script goes by its digest. A server that does not know it (new, restarted, `SCRIPT FLUSH`) has done nothing and says
 * so; then its text goes, which the server keeps. Invariants: what a call rejects with is a coded error; a call made before
 * there was a connection waits for it, within bounds, and later ones never wait.
 */
import { createHash } from "node:crypto";
import { systemClock } from "../../core/clock.js";
import type { RedisArgument, RedisCommand, RedisConnection, RedisNode, RedisReply } from "./driver.js";
import { type DurabilityOptions, sendConfirmed } from "./durability.js";
import { closedStore, faultOf, wordOf } from "./faults.js";
import type { Script } from "./scripts.js";

export interface Wire {
  /** Sends one command to the server of `name`. `wrote` says of its reply whether it has changed anything that needs confirming. */
  command(name: string, command: RedisCommand, wrote: (reply: RedisReply) => boolean): Promise<RedisReply>;
  /** Runs a script on the server of `names`, which are of one slot. */
  script(
    script: Script,
    names: readonly [string, ...string[]],
    args: readonly RedisArgument[],
  ): Promise<RedisReply>;
  /** The same on a server that is named, without keys. */
  scriptOn(node: RedisNode, script: Script, args: readonly RedisArgument[]): Promise<RedisReply>;
  /** Rejects once the store is closed, and until there is a connection or the time for it is over. */
  ready(): Promise<void>;
  /** Refuses every later call. */
  close(): void;
}

export interface WireOptions {
  readonly connection: RedisConnection;
  /** Settles once there is a connection. */
  readonly firstConnection: Promise<void>;
  readonly waitMs: number;
  readonly durability: DurabilityOptions;
}

export function createWire({ connection, firstConnection, waitMs, durability }: WireOptions): Wire {
  const send = sendConfirmed(connection, durability);
  // What is confirmed has to be one command: behind a second try the confirmation would count too little.
  const byText = durability.wait !== undefined || durability.waitAof !== undefined;
  let state: "connecting" | "connected" | "closed" = "connecting";
  void firstConnection.then(() => {
    if (state === "connecting") state = "connected";
  });

  function rejectCoded(error: unknown): never {
    if (wordOf(error) === "READONLY") connection.renew();
    throw faultOf(error);
  }

  function when(sendNow: () => Promise<RedisReply>): Promise<RedisReply> {
    return state === "connected" ? sendNow().catch(rejectCoded) : ready().then(sendNow).catch(rejectCoded);
  }

  async function ready(): Promise<void> {
    if (state === "connecting") await within(firstConnection, waitMs).catch(rejectCoded);
    if (state === "closed") throw closedStore();
  }

  /** @param sendTo sends a command to where the script is to run. */
  function run(
    sendTo: (command: RedisCommand) => Promise<RedisReply>,
    script: Script,
    names: readonly string[],
    args: readonly RedisArgument[],
  ): Promise<RedisReply> {
    const count = String(names.length);
    const whole = (): Promise<RedisReply> => sendTo(["EVAL", script.text, count, ...names, ...args]);
    if (byText) return whole();
    return sendTo(["EVALSHA", digestOf(script), count, ...names, ...args]).catch((error: unknown) => {
      if (wordOf(error) !== "NOSCRIPT") throw error;
      return whole();
    });
  }

  return {
    command: (name, command, wrote) => when(() => send(name, command, wrote)),
    script: (script, names, args) =>
      when(() => {
        const wrote = (reply: RedisReply): boolean => script.wrote.includes(Number(reply));
        return run((command) => send(names[0], command, wrote), script, names, args);
      }),
    scriptOn: (node, script, args) => when(() => run(node.send, script, [], args)),
    ready,
    close() {
      state = "closed";
    },
  };
}

const digests = new Map<Script, string>();

function digestOf(script: Script): string {
  let digest = digests.get(script);
  if (digest === undefined) {
    digest = createHash("sha1").update(script.text).digest("hex");
    digests.set(script, digest);
  }
  return digest;
}

function within(wait: Promise<void>, waitMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const giveUp = (): void => reject(new Error(`No connection to Redis within ${waitMs} ms`));
    const timer = systemClock.setTimer(giveUp, waitMs, false);
    void wait.then(() => {
      timer.cancel();
      resolve();
    });
  });
}
