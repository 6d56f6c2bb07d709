/**
 * @module
 * Repeats that wait for somebody else's attempt: one room per key and process.
 *
 * Invariants: whatever the number of waiters, a room registers once, asks the store once per wake-up, and at
 * most one of them claims. A waiter ends exactly once: with the record's answer, at its time limit, when its
 * client leaves, when an attempt it waited for failed too often, or at `close`. Waiters follow the record, never
 * a promise of whoever runs. Rooms and waiters are bounded.
 *
 * Interleavings that have a test: the wake-up comes between "in flight" and the registration (so a room
 * registers, then asks, then sleeps); it never comes (the fallback asks for all rooms in one call); the
 * waiter that was sent to claim leaves while the claim is under way (its claim is given back); the attempt
 * fails and a thousand wait (one claims); another process claims first (the rest wait on).
 */
import { defer } from "#platform";
import type { Calls } from "./calls.js";
import { OncekeyError } from "./errors.js";
import type { Fingerprint } from "./fingerprint.js";
import { FAILURES_SEEN, type Limits, WAKE_SLICE } from "./limits.js";
import type { ClaimToken, RecordKey, ScopeId } from "./record.js";
import type { Alarm, Schedule } from "./schedule.js";
import type { ClaimOutcome, KeyStatus, Store, Watch } from "./store.js";

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
  readonly storeTimeoutMs: number;
  /** The client: when it leaves, nobody needs the answer. */
  readonly signal: AbortSignal | undefined;
  /** Claims with this waiter's own token, within the store's time limit. */
  readonly claim: () => Promise<ClaimOutcome>;
  /** Gives back a claim that nobody will use. */
  readonly giveBack: () => void;
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

interface Member {
  readonly request: WaitRequest;
  readonly end: (result: WaitResult) => void;
  alarm: Alarm | undefined;
  /** Listens for the client's leaving. */
  leave: (() => void) | undefined;
  failuresSeen: number;
  /** Its claim is under way, and what has happened to it meanwhile. */
  asking: boolean;
  due: "timed-out" | "left" | undefined;
}

interface Room {
  readonly key: RecordKey;
  readonly members: Set<Member>;
  holder: Holder;
  heldSinceMs: number;
  watch: Watch | undefined;
  checking: boolean;
  checkAgain: boolean;
}

export interface Waiting {
  /** Waits for whoever holds `request.key`. */
  join(request: WaitRequest, holder: Holder): Promise<WaitResult>;
  /** The local holder is known now, or the key is held elsewhere after all. */
  heldBy(key: RecordKey, holder: Holder): void;
  /** The local holder's end is the record's answer for everybody with its fingerprint. */
  settle(key: RecordKey, fingerprint: Fingerprint, answer: Answer): void;
  /** The local attempt failed and the key is free. */
  released(key: RecordKey): void;
  /** The store could not be asked on behalf of the room. */
  fail(key: RecordKey, error: unknown): void;
  size(): number;
  close(): void;
}

export interface WaitingDependencies {
  readonly store: Store;
  readonly calls: Calls;
  readonly waits: Schedule;
  readonly limits: Limits;
  readonly nowMs: () => number;
}

export function createWaiting({ store, calls, waits, limits, nowMs }: WaitingDependencies): Waiting {
  const rooms = new Map<RecordKey, Room>();
  const perScope = new Map<ScopeId, number>();
  let waiting = 0;
  let fallback: Alarm | undefined;
  let closed = false;

  function roomFor(key: RecordKey, holder: Holder): Room {
    const known = rooms.get(key);
    if (known !== undefined) return known;
    const room: Room = {
      key,
      members: new Set(),
      holder,
      heldSinceMs: nowMs(),
      watch: undefined,
      checking: false,
      checkAgain: false,
    };
    rooms.set(key, room);
    return room;
  }

  function remainingMs(room: Room): number {
    return Math.max(0, room.heldSinceMs + room.holder.remainingMs - nowMs());
  }

  function setHolder(room: Room, holder: Holder): void {
    room.holder = holder;
    room.heldSinceMs = nowMs();
  }

  /** Takes a member out; the room goes with its last one. */
  function remove(room: Room, member: Member): void {
    if (!room.members.delete(member)) return;
    member.alarm?.cancel();
    if (member.leave !== undefined) member.request.signal?.removeEventListener("abort", member.leave);
    waiting -= 1;
    const { scopeId } = member.request;
    const left = (perScope.get(scopeId) ?? 1) - 1;
    if (left === 0) perScope.delete(scopeId);
    else perScope.set(scopeId, left);
    if (room.members.size > 0) return;
    room.watch?.close();
    if (rooms.get(room.key) === room) rooms.delete(room.key);
  }

  function finish(room: Room, member: Member, result: WaitResult): void {
    remove(room, member);
    member.end(result);
  }

  /** Ends a wait that ran out or lost its client, unless its claim is under way: then that decides first. */
  function expire(room: Room, member: Member, due: "timed-out" | "left"): void {
    if (member.asking) member.due = due;
    else
      finish(
        room,
        member,
        due === "left" ? { kind: "left" } : { kind: "timed-out", remainingMs: remainingMs(room) },
      );
  }

  /** Ends many waits, a slice per turn, so that they do not hold up everybody else. */
  function finishAll(room: Room, members: readonly Member[], result: WaitResult): void {
    for (const member of members.slice(0, WAKE_SLICE)) finish(room, member, result);
    if (members.length <= WAKE_SLICE) return;
    const rest = members.slice(WAKE_SLICE);
    defer(() =>
      finishAll(
        room,
        rest.filter((member) => room.members.has(member)),
        result,
      ),
    );
  }

  function settleRoom(room: Room, fingerprint: Fingerprint, answer: Answer): void {
    const same: Member[] = [];
    const other: Member[] = [];
    for (const member of room.members)
      (member.request.fingerprint === fingerprint ? same : other).push(member);
    finishAll(room, same, answer.kind === "unknown" ? { kind: "unknown" } : { kind: "answered", answer });
    // The key was released and claimed for another request meanwhile: each of these asks for itself.
    const state = answer.kind === "completed" ? "completed" : "unknown";
    if (answer.kind === "mismatch" || answer.kind === "full") return check(room);
    finishAll(room, other, { kind: "answered", answer: { kind: "mismatch", state } });
  }

  /** An attempt that the members waited for has failed. */
  function countFailure(room: Room): void {
    const done: Member[] = [];
    for (const member of room.members) {
      if (member.asking) continue;
      member.failuresSeen += 1;
      if (!member.request.takesOver || member.failuresSeen >= FAILURES_SEEN) done.push(member);
    }
    finishAll(room, done, { kind: "attempt-failed" });
  }

  /** Notes who holds the key now; a change of hands means that the attempt before has failed. */
  function changeHands(room: Room, holder: Holder): void {
    const before = room.holder.token;
    setHolder(room, holder);
    if (before !== undefined && before !== holder.token) countFailure(room);
  }

  function listen(room: Room): void {
    if (room.watch === undefined && store.watch !== undefined)
      room.watch = store.watch(room.key, () => check(room));
    if (fallback === undefined) fallback = waits.after(limits.waitFallbackMs, () => void askForAll());
  }

  /** Asks the store how the key stands, once however many wake-ups come meanwhile. */
  function check(room: Room): void {
    if (room.members.size === 0 || closed) return;
    if (room.checking) {
      room.checkAgain = true;
      return;
    }
    room.checking = true;
    void ask(room).finally(() => {
      room.checking = false;
      if (!room.checkAgain) return;
      room.checkAgain = false;
      check(room);
    });
  }

  async function ask(room: Room): Promise<void> {
    const oldest = [...room.members].find((member) => member.request.takesOver && member.due === undefined);
    try {
      if (oldest === undefined) await look(room);
      else await claimFor(room, oldest);
    } catch (error) {
      if (oldest !== undefined) oldest.asking = false;
      finishAll(room, [...room.members], { kind: "failed", error });
    }
  }

  async function claimFor(room: Room, member: Member): Promise<void> {
    member.asking = true;
    const answer = await member.request.claim();
    member.asking = false;
    if (answer.kind === "in-flight") {
      changeHands(room, { token: answer.holder, remainingMs: answer.remainingMs, local: false });
      if (member.due !== undefined) expire(room, member, member.due);
      return;
    }
    if (answer.kind === "unknown") {
      // This one finds out how it ended, and the others hear what it finds.
      finish(room, member, { kind: "answered", answer });
      setHolder(room, { token: undefined, remainingMs: 0, local: true });
      return;
    }
    if (answer.kind !== "claimed") return settleRoom(room, member.request.fingerprint, answer);
    if (member.due === "left") {
      finish(room, member, { kind: "left" });
      member.request.giveBack();
      room.checkAgain = true;
      return;
    }
    finish(room, member, { kind: "answered", answer });
    if (room.members.size > 0) changeHands(room, { token: undefined, remainingMs: 0, local: true });
  }

  /** For members that never run the work themselves: they only want to know how it went. */
  async function look(room: Room): Promise<void> {
    const [first] = room.members;
    if (first === undefined) return;
    const { operation, storeTimeoutMs } = first.request;
    const [status] = await calls.bounded("status", operation, storeTimeoutMs, () => store.status([room.key]));
    if (status === undefined || stillHeld(room, status)) return;
    if (status.state === "completed" || status.state === "unknown") return claimFor(room, first);
    finishAll(room, [...room.members], { kind: "attempt-failed" });
  }

  function stillHeld(room: Room, status: KeyStatus): boolean {
    return (
      status.state === "claimed" && (room.holder.token === undefined || status.holder === room.holder.token)
    );
  }

  /** One read for all rooms whose holder is elsewhere, for the wake-ups that were lost. */
  async function askForAll(): Promise<void> {
    fallback = undefined;
    const remote = [...rooms.values()].filter((room) => !room.holder.local && !room.checking);
    if (closed) return;
    try {
      const [some] = remote[0]?.members ?? [];
      if (some === undefined) return;
      const { operation, storeTimeoutMs } = some.request;
      const keys = remote.map((room) => room.key);
      const found = await calls.bounded("status", operation, storeTimeoutMs, () => store.status(keys));
      remote.forEach((room, index) => {
        const status = found[index];
        if (status !== undefined && !stillHeld(room, status)) check(room);
      });
    } catch {
      // `calls` has reported it; a waiter's own claim decides what it is told.
    } finally {
      if ([...rooms.values()].some((room) => !room.holder.local)) {
        fallback ??= waits.after(limits.waitFallbackMs, () => void askForAll());
      }
    }
  }

  function isCrowded(room: Room | undefined, scopeId: ScopeId): boolean {
    const inScope = perScope.get(scopeId) ?? 0;
    const inRoom = room?.members.size ?? 0;
    return (
      waiting >= limits.maxWaiters ||
      inScope >= limits.maxWaitersPerScope ||
      inRoom >= limits.maxWaitersPerKey
    );
  }

  function enter(room: Room, request: WaitRequest, end: (result: WaitResult) => void): void {
    const member: Member = {
      request,
      end,
      alarm: undefined,
      leave: undefined,
      failuresSeen: 0,
      asking: false,
      due: undefined,
    };
    member.alarm = waits.after(request.waitMs, () => expire(room, member, "timed-out"));
    if (request.signal !== undefined) {
      member.leave = () => expire(room, member, "left");
      request.signal.addEventListener("abort", member.leave, { once: true });
    }
    room.members.add(member);
    waiting += 1;
    perScope.set(request.scopeId, (perScope.get(request.scopeId) ?? 0) + 1);
  }

  return {
    join(request, holder) {
      if (closed) return Promise.resolve({ kind: "failed", error: closing() });
      if (request.signal?.aborted === true) return Promise.resolve({ kind: "left" });
      const known = rooms.get(request.key);
      if (isCrowded(known, request.scopeId)) {
        return Promise.resolve({ kind: "crowded", remainingMs: holder.remainingMs });
      }
      const room = roomFor(request.key, holder);
      return new Promise((end) => {
        enter(room, request, end);
        if (holder.local) return;
        const heard = room.watch !== undefined;
        if (!room.holder.local) setHolder(room, holder);
        listen(room);
        // Registered first, asked after: what happened in between is seen now.
        if (!heard) check(room);
      });
    },
    heldBy(key, holder) {
      const room = rooms.get(key);
      if (room === undefined) return;
      setHolder(room, holder);
      if (holder.local) return;
      listen(room);
      check(room);
    },
    settle(key, fingerprint, answer) {
      const room = rooms.get(key);
      if (room !== undefined) settleRoom(room, fingerprint, answer);
    },
    released(key) {
      const room = rooms.get(key);
      if (room === undefined) return;
      setHolder(room, NOBODY);
      countFailure(room);
      listen(room);
      check(room);
    },
    fail(key, error) {
      const room = rooms.get(key);
      if (room !== undefined) finishAll(room, [...room.members], { kind: "failed", error });
    },
    size: () => waiting,
    close() {
      closed = true;
      fallback?.cancel();
      for (const room of [...rooms.values()]) {
        finishAll(room, [...room.members], { kind: "failed", error: closing() });
      }
    },
  };
}

function closing(): OncekeyError<"CLOSING"> {
  return new OncekeyError("CLOSING", "The process is shutting down. Try again.", { retryAfterMs: 1_000 });
}
