/**
 * @module
 * The contract of watching: whoever waits hears soon, and never from inside a call.
 */
import { systemClock } from "../../core/clock.js";
import type { RecordKey } from "../../core/record.js";
import type { Store, Watch } from "../../core/store.js";
import { claimRequest, identityOf, newToken } from "../requests.js";
import { equal, ok } from "./check.js";
import { group, type StoreContext } from "./context.js";
import { completion, makeUnknown, releaseOf, versionIn } from "./scenes.js";

/** Wake-ups come by real events, also where leases are judged by a clock that stands still. */
const PATIENCE_MS = 3_000;
const STEP_MS = 5;

export const watching = group("watching", [
  {
    name: "a completion, a release, an unknown outcome and a verdict wake whoever waits",
    why: "Waiters would sleep until their fallback, all of them.",
    run: (context) => everyChangeWakes(context, context.store),
  },
  {
    name: "changes made by another connection wake too",
    why: "The repeat waits in another process than the one that runs the work.",
    async run(context) {
      const [, other] = await context.connections(2);
      ok(other, "another handle");
      await everyChangeWakes(context, other);
    },
  },
  {
    name: "nobody is woken inside the call that made the change",
    why: "A waiter that reads at once would find the record as it was, and sleep again.",
    async run({ store }) {
      const request = claimRequest();
      await store.claim(request);
      let inside = true;
      let wokenInside = false;
      let woken = 0;
      const watch = watchOf(store, request.key, () => {
        woken++;
        wokenInside ||= inside;
      });
      const completed = store.complete(completion(request));
      inside = false;
      await completed;
      await until(() => woken > 0, "woken at all");
      equal(wokenInside, false, "woken inside the call");
      watch.close();
    },
  },
  {
    name: "each registration is its own, and ends when it is closed",
    why: "A waiter that gave up would be called for ever, or take another's wake-up along.",
    async run({ store }) {
      const [request, other] = [claimRequest(), claimRequest()];
      await store.claim(request);
      await store.claim(other);
      const woken = { kept: 0, closed: 0, elsewhere: 0 };
      const shared = () => woken.closed++;
      const closing = watchOf(store, request.key, shared);
      const kept = watchOf(store, request.key, () => woken.kept++);
      const elsewhere = watchOf(store, other.key, () => woken.elsewhere++);
      closing.close();
      closing.close();
      await store.complete(completion(request));
      await until(() => woken.kept > 0, "the one that was kept");
      equal([woken.closed, woken.elsewhere], [0, 0], "the closed one, and the one of another key");
      kept.close();
      elsewhere.close();
    },
  },
]);

/** Watches through `store` of the context what `other` changes. */
async function everyChangeWakes(context: StoreContext, other: Store): Promise<void> {
  const { store } = context;
  const watched = async (key: RecordKey, change: () => unknown, what: string): Promise<void> => {
    let woken = 0;
    const watch = watchOf(store, key, () => woken++);
    await change();
    await until(() => woken > 0, what);
    watch.close();
  };
  const [completed, released, marked] = [claimRequest(), claimRequest(), claimRequest()];
  for (const request of [completed, released, marked]) await store.claim(request);
  await watched(completed.key, () => other.complete(completion(completed)), "woken by a completion");
  await watched(released.key, () => other.release(releaseOf(released)), "woken by a release");
  const mark = { ...identityOf(marked), attempt: 1, code: undefined };
  await watched(marked.key, () => other.markUnknown(mark), "woken by an unknown outcome");
  const unknown = await makeUnknown(context);
  const { key } = unknown;
  const version = await versionIn(context, unknown);
  const verdict = { kind: "not-performed" } as const;
  const resolve = { key, version, token: newToken(), verdict, evenIfLive: false };
  await watched(key, () => other.resolve(resolve), "woken by a verdict");
}

function watchOf(store: Store, key: RecordKey, wake: () => void): Watch {
  ok(store.watch, "the store has no watch: its waiters read from time to time");
  return store.watch(key, wake);
}

async function until(condition: () => boolean, what: string): Promise<void> {
  for (let waitedMs = 0; !condition(); waitedMs += STEP_MS) {
    ok(waitedMs < PATIENCE_MS, `${what}: not within ${PATIENCE_MS} ms`);
    await new Promise<void>((resolve) => systemClock.setTimer(resolve, STEP_MS));
  }
}
