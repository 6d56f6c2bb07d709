/**
 * @module
 * The waiters of one key in one process, and how their waits end.
 *
 * Invariant: a waiter ends exactly once, and with the last one the room is gone. When to ask the store, and
 * what its answers mean, is left to `waiting.ts`.
 */
import { defer } from "#platform";
import type { Fingerprint } from "./fingerprint.js";
import { onAbort } from "./leaving.js";
import { FAILURES_SEEN, type Limits, WAKE_SLICE } from "./limits.js";
import type { ClaimToken, RecordKey, ScopeId } from "./record.js";
import type { Alarm, Schedule } from "./schedule.js";
import type { ClaimOutcome, Watch } from "./store.js";

/** An answer of the store that ends a wait; `claimed` makes the waiter the executor. */
export type Answer = Exclude<ClaimOutcome, { readonly kind: "in-flight" }>;

export type WaitResult =
  | { readonly kind: "answered"; readonly answer: Answer }
  | { readonly kind: "timed-out"; readonly remainingMs: number }
  | { readonly kind: "attempt-failed" }
  /** Somebody here has asked how it ended, and nobody could say. */
  | { readonly kind: "unknown" }
  | { readonly kind: "crowded"; readonly remainingMs: number }
  | { readonly kind: "left" }
  | { readonly kind: "failed"; readonly error: unknown };

export interface WaitRequest {
  readonly key: RecordKey;
  readonly scopeId: ScopeId;
  readonly operation: string;
  readonly fingerprint: Fingerprint;
  readonly waitMs: number;
  readonly takesOver: boolean;
  /** A lapse means an unknown outcome to it, never that the work may start again. */
  readonly holds: boolean;
  readonly storeTimeoutMs: number;
  /** The client: when it leaves, nobody needs the answer. */
  readonly signal: AbortSignal | undefined;
  /** Claims with this waiter's own token, within the store's time limit. */
  readonly claim: () => Promise<ClaimOutcome>;
  /** Gives back a claim that nobody will use. Resolves when the store has heard of it, or had its time. */
  readonly giveBack: () => Promise<void>;
}

/** Who holds the key, as far as this process knows. */
export interface Holder {
  /** `undefined`: not known yet, because the claim is still under way. */
  readonly token: ClaimToken | undefined;
  readonly remainingMs: number;
  /** It runs in this process, which therefore hears of its end without the store. */
  readonly local: boolean;
}

/** The key is held by nobody that this process knows of: ask the store. */
export const NOBODY: Holder = { token: undefined, remainingMs: 0, local: false };

export interface Member {
  readonly request: WaitRequest;
  readonly end: (result: WaitResult) => void;
  alarm: Alarm | undefined;
  /** Listens for the client's leaving. */
  /** Stops listening for its client to leave. */
  stay: (() => void) | undefined;
  failuresSeen: number;
  /** Its claim is under way, and what has happened to it meanwhile. */
  asking: boolean;
  due: "timed-out" | "left" | undefined;
}

export interface Room {
  readonly key: RecordKey;
  readonly members: Set<Member>;
  holder: Holder;
  heldSinceMs: number;
  watch: Watch | undefined;
  /** From now on a change is seen: by a wake-up or, at the latest, by the fallback. */
  listening: boolean;
  checking: boolean;
  checkAgain: boolean;
}

/** All rooms of a process, and how many wait in them. */
export interface House {
  readonly rooms: Map<RecordKey, Room>;
  readonly perScope: Map<ScopeId, number>;
  readonly waits: Schedule;
  readonly limits: Limits;
  readonly nowMs: () => number;
  waiting: number;
}

export function roomFor({ rooms, nowMs }: House, key: RecordKey, holder: Holder): Room {
  const known = rooms.get(key);
  if (known !== undefined) return known;
  const room: Room = {
    key,
    members: new Set(),
    holder,
    heldSinceMs: nowMs(),
    watch: undefined,
    listening: false,
    checking: false,
    checkAgain: false,
  };
  rooms.set(key, room);
  return room;
}

export function setHolder(house: House, room: Room, holder: Holder): void {
  room.holder = holder;
  room.heldSinceMs = house.nowMs();
}

export function isCrowded(
  { waiting, perScope, limits }: House,
  room: Room | undefined,
  scopeId: ScopeId,
): boolean {
  if (waiting >= limits.maxWaiters) return true;
  if ((perScope.get(scopeId) ?? 0) >= limits.maxWaitersPerScope) return true;
  return (room?.members.size ?? 0) >= limits.maxWaitersPerKey;
}

export function enter(
  house: House,
  room: Room,
  request: WaitRequest,
  end: (result: WaitResult) => void,
): void {
  const member: Member = {
    request,
    end,
    alarm: undefined,
    stay: undefined,
    failuresSeen: 0,
    asking: false,
    due: undefined,
  };
  member.alarm = house.waits.after(request.waitMs, () => expire(house, room, member, "timed-out"));
  if (request.signal !== undefined) {
    member.stay = onAbort(request.signal, () => expire(house, room, member, "left"));
  }
  room.members.add(member);
  house.waiting += 1;
  house.perScope.set(request.scopeId, (house.perScope.get(request.scopeId) ?? 0) + 1);
}

/** Takes a member out; the room goes with its last one. */
function remove(house: House, room: Room, member: Member): void {
  if (!room.members.delete(member)) return;
  const { scopeId } = member.request;
  member.alarm?.cancel();
  member.stay?.();
  house.waiting -= 1;
  const left = (house.perScope.get(scopeId) ?? 1) - 1;
  if (left === 0) house.perScope.delete(scopeId);
  else house.perScope.set(scopeId, left);
  if (room.members.size > 0) return;
  room.watch?.close();
  room.watch = undefined;
  if (house.rooms.get(room.key) === room) house.rooms.delete(room.key);
}

export function finish(house: House, room: Room, member: Member, result: WaitResult): void {
  remove(house, room, member);
  member.end(result);
}

/**
 * Ends many waits. All are over at once, so that none of them is sent to claim any more; their callers hear of it a
 * slice per turn, so that they do not hold up everybody else.
 */
export function finishAll(house: House, room: Room, members: readonly Member[], result: WaitResult): void {
  for (const member of members) remove(house, room, member);
  tellAll(members, result);
}

function tellAll(members: readonly Member[], result: WaitResult): void {
  for (const member of members.slice(0, WAKE_SLICE)) member.end(result);
  if (members.length > WAKE_SLICE) defer(() => tellAll(members.slice(WAKE_SLICE), result));
}

/** Ends a wait that ran out or lost its client, unless its claim is under way: then that decides first. */
export function expire(house: House, room: Room, member: Member, due: "timed-out" | "left"): void {
  if (member.asking) {
    member.due = due;
    return;
  }
  const remainingMs = Math.max(0, room.heldSinceMs + room.holder.remainingMs - house.nowMs());
  finish(house, room, member, due === "left" ? { kind: "left" } : { kind: "timed-out", remainingMs });
}

/** An attempt that the members waited for has failed. */
function countFailure(house: House, room: Room): void {
  const done: Member[] = [];
  for (const member of room.members) {
    if (member.asking) continue;
    member.failuresSeen += 1;
    if (!member.request.takesOver || member.failuresSeen >= FAILURES_SEEN) done.push(member);
  }
  finishAll(house, room, done, { kind: "attempt-failed" });
}

/** Notes who holds the key now; a change of hands means that the attempt before has failed. */
export function changeHands(house: House, room: Room, holder: Holder): void {
  const before = room.holder.token;
  setHolder(house, room, holder);
  if (before !== undefined && before !== holder.token) countFailure(house, room);
}
