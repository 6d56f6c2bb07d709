/**
 * @module
 * Repeats that wait for somebody else's attempt: one room per key and process.
 *
 * Invariants: whatever the number of waiters, a room registers once, asks the store once per wake-up, and at
 * most one of them claims. A waiter ends with the record's answer, at its time limit, when its client leaves,
 * when attempts it waited for failed too often, or at `close`. Waiters follow the record, never a promise of
 * whoever runs. Rooms and waiters are bounded.
 *
 * Interleavings that have a test: the wake-up comes between "in flight" and the registration (so a room
 * registers, then asks, then sleeps); it never comes (the fallback asks for all rooms in one call); the
 * waiter that was sent to claim leaves while the claim is under way (its claim is given back); the attempt
 * fails and a thousand wait (one claims); another process claims first (the rest wait on).
 */
import type { Calls } from "./calls.js";
import { OncekeyError, unreachable } from "./errors.js";
import { compareFingerprints, type Fingerprint } from "./fingerprint.js";
import { FAILURES_SEEN, type Limits } from "./limits.js";
import type { ClaimToken, RecordKey } from "./record.js";
import type { Alarm, Schedule } from "./schedule.js";
import type { KeyStatus, Store } from "./store.js";
import {
  type Answer,
  changeHands,
  enter,
  expire,
  finish,
  finishAll,
  type Holder,
  type House,
  isCrowded,
  type Member,
  NOBODY,
  type Room,
  roomFor,
  setHolder,
  type WaitRequest,
  type WaitResult,
} from "./waiting-room.js";

/** One of this process, whose token is not known here yet. */
const ABOUT_TO_RUN: Holder = { token: undefined, remainingMs: 0, local: true };

export interface Waiting {
  /** Waits for whoever holds `request.key`. */
  join(request: WaitRequest, holder: Holder): Promise<WaitResult>;
  /** Who holds it now, here or elsewhere. */
  heldBy(key: RecordKey, holder: Holder): void;
  /** The record's answer for everybody with this fingerprint. */
  settle(key: RecordKey, fingerprint: Fingerprint, answer: Answer): void;
  /** The attempt of this token, which ran here, failed and the key is free. */
  released(key: RecordKey, token: ClaimToken): void;
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

interface State extends House {
  readonly store: Store;
  readonly calls: Calls;
  fallback: Alarm | undefined;
  closed: boolean;
}

export function createWaiting(dependencies: WaitingDependencies): Waiting {
  const state: State = {
    ...dependencies,
    rooms: new Map(),
    perScope: new Map(),
    waiting: 0,
    fallback: undefined,
    closed: false,
  };
  const inRoom = (key: RecordKey, act: (room: Room) => void): void => {
    const room = state.rooms.get(key);
    if (room !== undefined) act(room);
  };
  return {
    join: (request, holder) => join(state, request, holder),
    heldBy: (key, holder) => inRoom(key, (room) => heldBy(state, room, holder)),
    settle: (key, fingerprint, answer) => inRoom(key, (room) => settle(state, room, fingerprint, answer)),
    released: (key, token) => inRoom(key, (room) => released(state, room, token)),
    fail: (key, error) => inRoom(key, (room) => failAll(state, room, error)),
    size: () => state.waiting,
    close: () => close(state),
  };
}

async function join(state: State, request: WaitRequest, holder: Holder): Promise<WaitResult> {
  if (state.closed) return { kind: "failed", error: closing() };
  if (request.signal?.aborted === true) return { kind: "left" };
  const known = state.rooms.get(request.key);
  if (isCrowded(state, known, request.scopeId)) return { kind: "crowded", remainingMs: holder.remainingMs };
  const room = roomFor(state, request.key, holder);
  return new Promise((end) => {
    enter(state, room, request, end);
    if (holder.local) return;
    const heard = room.listening;
    if (!room.holder.local) setHolder(state, room, holder);
    listen(state, room);
    // Registered first, asked after: what happened in between is seen now.
    if (!heard) check(state, room);
  });
}

function heldBy(state: State, room: Room, holder: Holder): void {
  setHolder(state, room, holder);
  if (holder.local) return;
  listen(state, room);
  check(state, room);
}

function released(state: State, room: Room, token: ClaimToken): void {
  // A wake-up of the store may have come first: then the failure is counted, and the key in other hands.
  if (room.holder.token === token) changeHands(state, room, NOBODY);
  listen(state, room);
  check(state, room);
}

function settle(state: State, room: Room, fingerprint: Fingerprint, answer: Answer): void {
  const same: Member[] = [];
  const other: Member[] = [];
  for (const member of room.members) {
    // Fingerprints of different rules say nothing about each other: never a mismatch.
    const differs = compareFingerprints(fingerprint, member.request.fingerprint) === "different";
    (differs ? other : same).push(member);
  }
  finishAll(
    state,
    room,
    same,
    answer.kind === "unknown" ? { kind: "unknown" } : { kind: "answered", answer },
  );
  if (other.length === 0) return;
  // The key was released and used for another request meanwhile. What is on record is compared with each.
  if (answer.kind === "completed" || answer.kind === "unknown") {
    const mismatch: Answer = { kind: "mismatch", state: answer.kind };
    finishAll(state, room, other, { kind: "answered", answer: mismatch });
  } else {
    check(state, room);
  }
}

function failAll(state: State, room: Room, error: unknown): void {
  finishAll(state, room, [...room.members], { kind: "failed", error });
}

function listen(state: State, room: Room): void {
  const { store } = state;
  room.listening = true;
  room.watch ??= store.watch?.(room.key, () => check(state, room));
  fallBack(state);
}

function fallBack(state: State): void {
  state.fallback ??= state.waits.after(state.limits.waitFallbackMs, () => void askForAll(state));
}

/** Asks the store how the key stands, once however many wake-ups come meanwhile. */
function check(state: State, room: Room): void {
  if (room.members.size === 0 || state.closed) return;
  if (room.checking) {
    room.checkAgain = true;
    return;
  }
  room.checking = true;
  void ask(state, room).finally(() => {
    room.checking = false;
    if (!room.checkAgain) return;
    room.checkAgain = false;
    check(state, room);
  });
}

/** Lets the oldest waiter with a living client claim; who never runs the work only looks. */
async function ask(state: State, room: Room): Promise<void> {
  const oldest = [...room.members].find((member) => member.request.takesOver && member.due === undefined);
  try {
    if (oldest === undefined) await look(state, room);
    else await claimFor(state, room, oldest);
  } catch (error) {
    failAll(state, room, error);
  }
}

async function claimFor(state: State, room: Room, member: Member): Promise<void> {
  member.asking = true;
  const answer = await member.request.claim().finally(() => {
    member.asking = false;
  });
  if (!room.members.has(member)) {
    // Its wait has ended meanwhile, by an answer that others got: it runs nothing any more.
    if (answer.kind === "claimed") await member.request.giveBack();
    room.checkAgain = true;
    return;
  }
  switch (answer.kind) {
    case "in-flight":
      changeHands(state, room, { token: answer.holder, remainingMs: answer.remainingMs, local: false });
      if (member.due !== undefined) expire(state, room, member, member.due);
      break;
    case "claimed":
      await claimed(state, room, member, answer);
      break;
    case "unknown":
      // This one finds out how it ended, and the others hear what it finds.
      finish(state, room, member, { kind: "answered", answer });
      setHolder(state, room, ABOUT_TO_RUN);
      break;
    case "completed":
    case "mismatch":
    case "exhausted":
    case "full":
      settle(state, room, member.request.fingerprint, answer);
      break;
    default:
      unreachable(answer);
  }
}

async function claimed(state: State, room: Room, member: Member, answer: Answer): Promise<void> {
  const end = endOfWinner(room, member);
  finish(state, room, member, end ?? { kind: "answered", answer });
  changeHands(state, room, end === undefined ? ABOUT_TO_RUN : NOBODY);
  if (end === undefined) return;
  // The next of them claims when this claim is back, and does not take it for an attempt that failed.
  await member.request.giveBack();
  room.checkAgain = true;
}

/** Why a waiter that has won the claim does not use it. */
function endOfWinner({ holder }: Room, { due, failuresSeen }: Member): WaitResult | undefined {
  if (due === "left") return { kind: "left" };
  // Winning it tells that the holder it knew of has failed.
  const failures = failuresSeen + (holder.token === undefined ? 0 : 1);
  return failures >= FAILURES_SEEN ? { kind: "attempt-failed" } : undefined;
}

async function look(state: State, room: Room): Promise<void> {
  const { calls, store } = state;
  const [first] = room.members;
  if (first === undefined) return;
  const { operation, storeTimeoutMs } = first.request;
  const [status] = await calls.bounded("status", operation, storeTimeoutMs, () => store.status([room.key]));
  if (status === undefined || stillHeld(room, status)) return;
  const hasEnded = status.state === "completed" || status.state === "unknown";
  if (hasEnded || (status.state === "lapsed" && first.request.holds)) return claimFor(state, room, first);
  finishAll(state, room, [...room.members], { kind: "attempt-failed" });
}

function stillHeld({ holder }: Room, status: KeyStatus): boolean {
  return status.state === "claimed" && (holder.token === undefined || status.holder === holder.token);
}

/** One read for all rooms whose holder is elsewhere, for the wake-ups that were lost. */
async function askForAll(state: State): Promise<void> {
  state.fallback = undefined;
  const remote = [...state.rooms.values()].filter(({ holder, checking }) => !holder.local && !checking);
  const [first] = remote[0]?.members ?? [];
  if (first !== undefined && !state.closed) {
    const { operation, storeTimeoutMs } = first.request;
    const keys = remote.map((room) => room.key);
    const ask = () => state.store.status(keys);
    // A failure was reported by `calls`; a waiter's own claim decides what it is told.
    const found = await state.calls.bounded("status", operation, storeTimeoutMs, ask).catch(() => []);
    remote.forEach((room, index) => {
      const status = found[index];
      if (status !== undefined && !stillHeld(room, status)) check(state, room);
    });
  }
  if ([...state.rooms.values()].some(({ holder }) => !holder.local)) fallBack(state);
}

function close(state: State): void {
  state.closed = true;
  state.fallback?.cancel();
  for (const room of [...state.rooms.values()]) failAll(state, room, closing());
}

export function closing(): OncekeyError<"CLOSING"> {
  return new OncekeyError("CLOSING", "The process is shutting down. Try again.", { retryAfterMs: 1_000 });
}
