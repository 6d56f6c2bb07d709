/**
 * @module
 * What a server says of itself: who it is, what it keeps, and what it may forget.
 *
 * Invariant: what cannot be read (managed servers often forbid `CONFIG`) is taken for the worse, and said so.
 */
import type { StoreTraits } from "../../core/store.js";
import type { RedisCommand, RedisNode, RedisReply } from "./driver.js";
import type { DurabilityOptions } from "./durability.js";
import { wordOf } from "./faults.js";

export interface ServerFacts {
  /** It has told of itself, or that it may not be asked. One that is still loading its data has done neither. */
  readonly answered: boolean;
  /** Another one after each start of the server. */
  readonly runId: string | undefined;
  readonly version: string | undefined;
  /** `undefined`: it may not be asked. */
  readonly evicts: string | false | undefined;
  /** When the append-only file reaches the disk; `"off"`: there is none. */
  readonly fsync: "always" | "everysec" | "no" | "off" | undefined;
  readonly replicas: number;
  readonly replica: boolean;
}

/** The commands used need it: SET with NX and GET, PEXPIRETIME, sharded publish/subscribe. */
const OLDEST = [7, 0] as const;
const OLDEST_WITH_WAITAOF = [7, 2] as const;

function isBefore(version: string, [major, minor]: readonly [number, number]): boolean {
  const [ownMajor = 0, ownMinor = 0] = version.split(".").map(Number);
  return ownMajor < major || (ownMajor === major && ownMinor < minor);
}

/** Never rejects: what cannot be read stays unknown. */
export async function inspect(node: RedisNode): Promise<ServerFacts> {
  const [info, config] = await Promise.all([
    ask(node, ["INFO"]),
    ask(node, ["CONFIG", "GET", "appendfsync"]),
  ]);
  const fields = new Map(info.reply?.toString().split("\r\n").map(splitOnce));
  // Without INFO nobody knows whether there is a file to which the setting applies.
  const aof = fields.get("aof_enabled");
  return {
    answered: info.answered || config.answered,
    runId: fields.get("run_id"),
    version: fields.get("redis_version"),
    evicts: evictionOf(fields),
    fsync: aof === "0" ? "off" : fsyncOf(aof === undefined ? undefined : config.reply),
    replicas: Number(fields.get("connected_slaves") ?? 0),
    replica: fields.get("role") === "slave",
  };
}

function evictionOf(fields: ReadonlyMap<string, string>): string | false | undefined {
  const policy = fields.get("maxmemory_policy");
  if (policy === undefined) return undefined;
  return fields.get("maxmemory") === "0" || policy === "noeviction" ? false : policy;
}

function splitOnce(line: string): readonly [string, string] {
  const at = line.indexOf(":");
  return [line.slice(0, at), line.slice(at + 1)];
}

/** How a server says that it may not be asked, which is an answer too. */
const REFUSALS: ReadonlySet<string> = new Set(["NOPERM", "NOAUTH", "WRONGPASS", "ERR"]);

async function ask(
  node: RedisNode,
  command: RedisCommand,
): Promise<{ readonly answered: boolean; readonly reply: RedisReply | undefined }> {
  try {
    return { answered: true, reply: await node.send(command) };
  } catch (error) {
    return { answered: REFUSALS.has(wordOf(error)), reply: undefined };
  }
}

/** The answer of CONFIG GET is a list of names and values, or a map, by protocol and client. */
function fsyncOf(reply: RedisReply | undefined): ServerFacts["fsync"] {
  const pairs: unknown = reply instanceof Map ? [...reply].flat() : reply;
  const value = String(Array.isArray(pairs) ? pairs[1] : Object.values(pairs ?? {})[0]);
  return value === "always" || value === "everysec" || value === "no" ? value : undefined;
}

/** The worst of them all, before any server has said otherwise. */
export const UNKNOWN_TRAITS: StoreTraits = {
  forgetsOn: { processCrash: true, powerLoss: true, failover: true, eviction: true },
  reach: "network",
};

/** @param replicated a replica may take a server's place, whatever the servers say. */
export function traitsOf(
  servers: readonly ServerFacts[],
  replicated: boolean,
  { waitAof }: DurabilityOptions,
): StoreTraits {
  const some = (test: (server: ServerFacts) => boolean): boolean =>
    servers.length === 0 || servers.some(test);
  const confirmedByDisk = waitAof?.local === 1;
  return {
    forgetsOn: {
      processCrash: some(({ fsync }) => fsync === undefined || fsync === "off"),
      powerLoss: some(({ fsync }) => fsync !== "always" && !(confirmedByDisk && fsync !== "off")),
      failover: replicated || some(({ replicas, replica }) => replicas > 0 || replica),
      eviction: some(({ evicts }) => evicts !== false),
    },
    reach: "network",
  };
}

/** What an operator should know, in sentences. */
export function warningsOf(
  servers: readonly ServerFacts[],
  { waitAof }: DurabilityOptions,
): readonly string[] {
  const warnings = new Set<string>();
  for (const { evicts, fsync, version } of servers) {
    if (evicts === undefined) warnings.add(NOT_CHECKED);
    else if (evicts !== false) warnings.add(evicting(evicts));
    if (fsync === undefined) warnings.add(PERSISTENCE_NOT_CHECKED);
    else if (fsync !== "always") warnings.add(PERSISTENCE[fsync]);
    if (version !== undefined && isBefore(version, OLDEST)) {
      warnings.add(`Redis ${version} is too old: the store needs ${OLDEST.join(".")} or later`);
    } else if (version !== undefined && waitAof !== undefined && isBefore(version, OLDEST_WITH_WAITAOF)) {
      warnings.add(`Redis ${version} has no WAITAOF: every claim fails as long as durability.waitAof is set`);
    }
  }
  return [...warnings];
}

const NOT_CHECKED =
  "INFO may not be asked: whether the server can evict live claims (maxmemory-policy) and what it keeps when it ends could not be checked";
const PERSISTENCE_NOT_CHECKED =
  "INFO or CONFIG may not be asked: what the server keeps when it ends (appendonly, appendfsync) could not be checked";
const evicting = (policy: string): string =>
  `maxmemory-policy is ${policy}: a full server can evict live claims and completions, and their work runs again; set it to noeviction`;
const PERSISTENCE = {
  everysec:
    "appendfsync is everysec: a power cut can take the last second of claims and completions with it, and their work may run again",
  no: "appendfsync is no: a power cut can take what the operating system had not written yet, and its work may run again",
  off: "there is no append-only file: a restart forgets everything since the last snapshot, or everything, and its work may run again",
} as const;
