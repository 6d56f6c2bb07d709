/**
 * @module test/servers/faults/outages
 *
 * The network between an application and its server fails at the worst moments, and the server itself stands still, dies and comes back.
 *
 * What holds: every call is answered within its bound; what a caller was told is what repeats are told; nobody's claim is lost, and none is
 * left that nobody owns.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Guarantee } from "oncekey";
import { describe, expect, it, type TestContext, vi } from "vitest";
import type { Server } from "../../../../../scripts/services.mjs";
import { type FaultProxy, faultProxy } from "../support/fault-proxy.js";
import { ownServer } from "../support/servers.js";
import type { CallOptions, Outcome, Point } from "./apps/caller.mjs";
import { answered, PASSING } from "./asking.js";
import { type Caller, LEASE_MS, type Place, type SharedSubject, sharedSubject } from "./subject.js";

/** A call of the store ends within a quarter of the lease; a claim is asked twice. The rest is the machine's. */
const BOUND_MS = 2 * LEASE_MS;

interface Scene {
  readonly place: Place;
  readonly proxy: FaultProxy;
  /** The application whose network fails, and one whose network does not. */
  readonly caller: Caller;
  readonly other: Caller;
  readonly label: string;
  /** A call that gets to its point, and its outcome: on a busy machine a claim may fail before. */
  first(options: Omit<CallOptions, "label">): Promise<Outcome>;
}

/** `atPoint` is done to the network when the call of this scene gets to the point where it halts. */
async function throughProxy(
  subject: SharedSubject,
  context: TestContext,
  atPoint: (proxy: FaultProxy) => unknown,
): Promise<Scene> {
  const place = await subject.place(context);
  const proxy = await faultProxy(subject.address);
  let reached = false;
  const onPoint = async () => {
    reached = true;
    atPoint(proxy);
  };
  const caller = await place.caller({ address: proxy.url, onPoint });
  // Closed before the caller is: what it still has to say must not wait.
  context.onTestFinished(proxy.flow);
  const other = await place.caller();
  const label = place.label("k");
  const first = async (options: Omit<CallOptions, "label">): Promise<Outcome> => {
    const outcome = await timed(caller.call({ ...options, label }));
    if (reached || outcome.kind !== "refused") return outcome;
    await sleep(20);
    return first(options);
  };
  return { place, proxy, caller, other, label, first };
}

async function timed(call: Promise<Outcome>): Promise<Outcome> {
  const startedAt = performance.now();
  const outcome = await call;
  expect(performance.now() - startedAt).toBeLessThan(BOUND_MS);
  return outcome;
}

/** The end of every scene: a repeat gets a result, what happened happened once, and all results are one. */
async function settled({ place, other, label }: Scene, guarantee: Guarantee, first: Outcome): Promise<void> {
  // A completion that the fault held up is still on its way after its caller has been answered.
  const passing = first.kind === "refused" ? PASSING : [...PASSING, "OUTCOME_UNKNOWN"];
  const repeat = await answered(() => other.call({ label, guarantee }), passing);
  if (first.kind === "refused") expect(repeat).toMatchObject({ kind: expect.not.stringMatching("refused") });
  else expect(repeat).toEqual({ ...first, kind: "replayed" });
  expect(await place.effects(label, guarantee)).toBe(1);
  await place.verify(label, guarantee);
}

const CUTS = ["before", "after"] as const;
/** Where the next thing that is sent is the claim, and the completion. */
const SENDS = { claim: "before-claim", completion: "before-completion" } as const satisfies Record<
  string,
  Point
>;

function cutSuite(subject: SharedSubject, guarantee: Guarantee): void {
  const cases = CUTS.flatMap((cut) => (["claim", "completion"] as const).map((what) => ({ cut, what })));
  it.for(cases)("cut $cut the $what has arrived", { timeout: 120_000 }, async ({ cut, what }, context) => {
    let sprung: Promise<void> | undefined;
    const scene = await throughProxy(subject, context, (proxy) => {
      sprung ??= cut === "before" ? proxy.cutBeforeNext() : proxy.cutAfterNext();
    });
    const first = await scene.first({ guarantee, haltAt: SENDS[what] });
    await sprung;
    // Whoever has done its work is told so, whatever became of the completion; a commit may have been lost instead.
    if (what === "completion" && guarantee !== "exactly-once") expect(first.kind).toBe("executed");
    await settled(scene, guarantee, first);
  });
}

function halfOpenSuite(subject: SharedSubject, guarantee: Guarantee): void {
  it.for(["claim", "completion"] as const)(
    "half-open when the %s is sent",
    { timeout: 120_000 },
    async (what, context) => {
      const scene = await throughProxy(subject, context, (proxy) => proxy.stall());
      const first = await scene.first({ guarantee, haltAt: SENDS[what] });
      if (what === "claim") expect(first).toEqual({ kind: "refused", code: "STORE_UNAVAILABLE" });
      else if (guarantee !== "exactly-once") expect(first.kind).toBe("executed");
      scene.proxy.flow();
      await settled(scene, guarantee, first);
    },
  );

  it("half-open for a while as work runs: nobody gets in", { timeout: 120_000 }, async (context) => {
    const scene = await throughProxy(subject, context, (proxy) => proxy.stall());
    const { place, other, proxy, label } = scene;
    const running = scene.first({ guarantee, haltAt: "claimed", workMs: LEASE_MS });
    await vi.waitFor(() => expect(place.events(label)).toContain("claimed"), LEASE_MS);
    await sleep(LEASE_MS / 4);
    const meanwhile = await answered(() => other.call({ label, guarantee }));
    expect(meanwhile).toEqual({ kind: "refused", code: "IN_FLIGHT" });
    proxy.flow();
    await settled(scene, guarantee, await running);
  });

  it("slow: everything takes longer, nothing else changes", { timeout: 120_000 }, async (context) => {
    const scene = await throughProxy(subject, context, () => {});
    const { caller, proxy, label } = scene;
    proxy.slow(10);
    const first = await timed(answered(() => caller.call({ label, guarantee }), PASSING));
    expect(first.kind).toBe("executed");
    await settled(scene, guarantee, first);
  });
}

/** So long that a claim that nobody owns would be in the way for the whole test. */
const LONG_LEASE_MS = 120_000;
const CALLERS = 100;

function callsOf(place: Place, guarantee: Guarantee): CallOptions[] {
  return Array.from({ length: CALLERS }, (_, n) => ({ label: place.label(`k${n}`), guarantee }));
}

function serverSuite(subject: SharedSubject, start: () => Promise<Server>): void {
  /** A place on a server of its own, and callers that would have to wait long for a claim that nobody owns. */
  async function onOwnServer(context: TestContext) {
    const server = await start();
    context.onTestFinished(server.close);
    const own = await sharedSubject(subject.storeName, server.url, subject.guarantees);
    context.onTestFinished(own.close);
    const place = await own.place(context);
    const policy = { leaseMs: LONG_LEASE_MS, storeTimeoutMs: LEASE_MS / 4 };
    return {
      server,
      place,
      callers: await Promise.all([place.caller({ policy }), place.caller({ policy })]),
    };
  }

  const guarantee = "at-least-once";
  const outages = {
    "stands still": { begin: (server: Server) => server.pause(), end: (server: Server) => server.resume() },
    "is killed": {
      begin: (server: Server) => server.stop("SIGKILL"),
      end: (server: Server) => server.start(),
    },
    "is stopped in order": {
      begin: (server: Server) => server.stop(),
      end: (server: Server) => server.start(),
    },
  };
  it.for(Object.entries(outages))(
    "the server %s under 100 callers, and comes back: no claim is left that nobody owns",
    { timeout: 120_000 },
    async ([, outage], context) => {
      const { server, place, callers } = await onOwnServer(context);
      const [one, two] = callers;
      const kept = await answered(() => one.call({ label: place.label("kept"), guarantee }), PASSING);
      const calls = callsOf(place, guarantee);
      const running = calls.slice(0, CALLERS / 2).map((call) => timed(one.call({ ...call, workMs: 20 })));
      await sleep(5);
      await outage.begin(server);
      const refused = calls.slice(CALLERS / 2).map((call) => timed(two.call(call)));
      const outcomes = await Promise.all([...running, ...refused]);
      const codes = outcomes.map((outcome) => (outcome.kind === "refused" ? outcome.code : ""));
      expect(codes).toContain("STORE_UNAVAILABLE");

      await outage.end(server);
      const startedAt = performance.now();
      const repeats = await Promise.all(calls.map((call) => answered(() => two.call(call), PASSING)));
      expect(performance.now() - startedAt).toBeLessThan(LONG_LEASE_MS / 2);
      for (const [n, { label }] of calls.entries()) {
        expect(repeats[n], `of ${label}`).not.toMatchObject({ kind: "refused" });
        expect(await place.effects(label, guarantee), `effects of ${label}`).toBe(1);
        await place.verify(label, guarantee);
      }
      const again = await answered(() => two.call({ label: place.label("kept"), guarantee }));
      expect(again).toEqual({ ...kept, kind: "replayed" });
    },
  );
}

export function outageSuite(subject: SharedSubject, start: () => Promise<Server>): void {
  describe.each(subject.guarantees)("%s: the network fails", (guarantee) => {
    cutSuite(subject, guarantee);
    halfOpenSuite(subject, guarantee);
  });
  describe("the server fails", () => serverSuite(subject, start));
}

/** Keeps over a crash what it has acknowledged. */
export const durableRedis = () =>
  ownServer("redis", { settings: { appendonly: "yes", appendfsync: "always" } });
