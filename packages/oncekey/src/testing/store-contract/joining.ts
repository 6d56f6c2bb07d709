/**
 * @module
 * The contract of joining: claims and completions inside a transaction that the application holds.
 */
import type { ClaimRequest, JoinedTransaction, Store } from "../../core/store.js";
import { claimRequest, repeatOf } from "../requests.js";
import { equal, has, kind, ok, refuses } from "./check.js";
import { type ContractCaller, group, SHORT_MS, type StoreContext } from "./context.js";
import { completion, outcome } from "./scenes.js";

const PAID = outcome("paid 10");
const WAIT_MS = 2_000;
/** Long enough to tell a wait from an answer, short enough to be in nobody's way. */
const BRIEFLY_MS = 200;

export const joining = group("joining", [
  {
    name: "claim, rows and completion of a joined transaction are there when it commits",
    why: "The charge without its record is charged again; the record without the charge is never charged.",
    async run(context) {
      const { caller, joined } = await begun(context);
      const request = exactly();
      await claimIn(joined, request);
      await caller.write(request.key);
      await joined.complete([completion(request)]);
      equal(await rowsOf(context, request), 0, "rows before the commit");
      await caller.commit();
      equal(await rowsOf(context, request), 1, "rows after it");
      const repeat = await context.store.claim(repeatOf(request));
      has(repeat, { kind: "completed", outcome: PAID, completedBy: request.token }, "a repeat");
    },
  },
  {
    name: "of a joined transaction that is rolled back nothing is left",
    why: "A key whose work was undone would be taken for done, or stay in flight.",
    async run(context) {
      const { caller, joined } = await begun(context);
      const request = exactly();
      await claimIn(joined, request);
      await joined.complete([completion(request)]);
      await caller.rollback();
      equal(await context.store.find(request.key), undefined, "the record");
      has(await context.store.claim(repeatOf(request)), { kind: "claimed", attempt: 1 }, "the next");
    },
  },
  {
    name: "going back to a savepoint undoes what came after it, and the transaction goes on",
    why: "The application's own rows would go with a piece of work that failed.",
    async run(context) {
      const { caller, joined } = await begun(context);
      const request = exactly();
      await caller.write(request.key);
      const before = await joined.savepoint();
      await claimIn(joined, request);
      const rows = await joined.savepoint();
      await caller.write(request.key);
      await rows.release();
      await joined.complete([completion(request)]);
      await before.rollback();
      await caller.write(request.key);
      await caller.commit();
      equal(await rowsOf(context, request), 2, "rows from before and after");
      equal(await context.store.find(request.key), undefined, "the record");
    },
  },
  {
    name: "a repeat in a transaction is answered from the record, and the transaction goes on",
    why: "A unique violation would poison the application's transaction: 25P02 for everything after it.",
    async run(context) {
      const { store } = context;
      const request = exactly();
      await store.claim(request);
      const { caller, joined } = await begun(context);
      const before = await joined.savepoint();
      has(
        await claimIn(joined, repeatOf(request), "in-flight"),
        { holder: request.token },
        "while somebody runs it",
      );
      await store.complete(completion(request));
      has(await claimIn(joined, repeatOf(request), "completed"), { outcome: PAID }, "once it is done");
      const other = claimRequest({ key: request.key, fingerprint: claimRequest().fingerprint });
      await claimIn(joined, { ...other, fingerprint: differing(request) }, "mismatch");
      await before.release();
      await caller.write(request.key);
      await caller.commit();
      equal(await rowsOf(context, request), 1, "rows of a transaction that had three repeats");
    },
  },
  {
    name: "a claim that has lapsed is taken over in a transaction, and its former holder is told once that commits",
    why: "Two runs of one key would both be kept.",
    async run(context) {
      const { store, lapse } = context;
      const late = exactly({ leaseMs: SHORT_MS });
      await store.claim(late);
      await lapse();
      const { caller, joined } = await begun(context);
      const successor = repeatOf(late);
      has(await claimIn(joined, successor), { attempt: 2, takeover: true }, "the takeover");
      await joined.complete([completion(successor, "by the successor", 2)]);
      await caller.commit();
      has(await store.complete(completion(late)), { kind: "replaced" }, "the former holder");
    },
  },
  {
    name: "of two transactions that claim one key the second waits for the first, and gets its result",
    why: "Both would run, and one would fail at its commit.",
    async run(context) {
      const first = await begun(context);
      const second = await begun(context);
      const request = exactly();
      await claimIn(first.joined, request);
      await first.joined.complete([completion(request)]);
      const waiting = second.joined.savepoint().then(() => second.joined.claim([repeatOf(request)], WAIT_MS));
      await context.sleep(BRIEFLY_MS);
      await first.caller.commit();
      const [answer] = await waiting;
      has(answer, { kind: "completed", outcome: PAID }, "the second");
    },
  },
  {
    name: "a wait for another transaction ends in time, and the transaction goes on",
    why: "A transaction that nobody ends would hold up every other that meets its key.",
    async run(context) {
      const first = await begun(context);
      const second = await begun(context);
      const request = exactly();
      await claimIn(first.joined, request);
      for (const waitMs of [0, BRIEFLY_MS]) {
        const before = await second.joined.savepoint();
        const [answer] = await second.joined.claim([repeatOf(request)], waitMs);
        equal(answer, { kind: "contended" }, "the second");
        await before.rollback();
      }
      await second.caller.write(request.key);
      await second.caller.commit();
      equal(await rowsOf(context, request), 1, "its rows");
    },
  },
  {
    name: "transactions that claim the same keys in different orders do not wait for each other for ever",
    why: "Each would hold what the other waits for: a deadlock.",
    async run(context) {
      for (let round = 0; round < 5; round += 1) {
        const [a, b, c] = [exactly(), exactly(), exactly()];
        const both = await Promise.all([begun(context), begun(context)]);
        const orders = [
          [a, b, c],
          [repeatOf(c), repeatOf(b), repeatOf(a)],
        ];
        const answers = await Promise.all(
          both.map(async ({ caller, joined }, index) => {
            const requests = orders[index] ?? [];
            await joined.savepoint();
            const claims = await joined.claim(requests, WAIT_MS);
            const won = requests.filter((_, place) => claims[place]?.kind === "claimed");
            await joined.complete(won.map((request) => completion(request)));
            await caller.commit();
            return claims.map((claim) => claim.kind);
          }),
        );
        const kinds = answers.map((answer) => [...new Set(answer)].join());
        equal([...kinds].sort(), ["claimed", "completed"], "all of one, none of the other");
      }
    },
  },
  {
    name: "a claim that is not committed yet holds up nobody but those who ask for its key",
    why: "A batch of claims would stand behind one transaction that somebody keeps open.",
    async run(context) {
      const { store } = context;
      const { joined } = await begun(context);
      const request = exactly();
      await claimIn(joined, request);
      const repeat = store.claim(repeatOf(request));
      const stranger = await Promise.race([store.claim(claimRequest()), late(context, "a stranger")]);
      has(stranger, { kind: "claimed" }, "a stranger");
      has(await Promise.race([repeat, late(context, "a repeat")]), { kind: "in-flight" }, "a repeat");
    },
  },
  {
    name: "a completion whose claim the work has undone is refused",
    why: "A key would be answered as done whose rows and claim are gone.",
    async run(context) {
      const { joined } = await begun(context);
      const request = exactly();
      const before = await joined.savepoint();
      await claimIn(joined, request);
      await before.rollback();
      await refuses(() => joined.complete([completion(request)]), "TRANSACTION_ABORTED", "its completion");
    },
  },
]);

const exactly = (parts: Partial<ClaimRequest> = {}): ClaimRequest =>
  claimRequest({ guarantee: "exactly-once", ...parts });

const differing = ({ fingerprint }: ClaimRequest): ClaimRequest["fingerprint"] =>
  fingerprint.replace(/.$/, (last) => (last === "A" ? "B" : "A")) as ClaimRequest["fingerprint"];

async function late({ sleep }: StoreContext, who: string): Promise<never> {
  await sleep(WAIT_MS / 2);
  throw new Error(`${who} had to wait for a transaction`);
}

interface Begun {
  readonly caller: ContractCaller<never>;
  readonly joined: JoinedTransaction;
}

async function begun({ store, beginCaller }: StoreContext): Promise<Begun> {
  const join: Store["join"] = store.join?.bind(store);
  ok(join, "the store can join no transaction");
  const caller = await beginCaller();
  return { caller, joined: join(caller.transaction) };
}

/** Claims one key directly after a savepoint, as the core does. */
async function claimIn<K extends "claimed" | "completed" | "in-flight" | "mismatch" = "claimed">(
  joined: JoinedTransaction,
  request: ClaimRequest,
  expected: K = "claimed" as K,
) {
  await joined.savepoint();
  const [answer] = await joined.claim([request], WAIT_MS);
  ok(answer, "no answer to the claim");
  return kind(answer, expected, "the claim");
}

async function rowsOf({ rows }: StoreContext, { key }: ClaimRequest): Promise<number> {
  ok(rows, "the binding gives no rows");
  return rows.count(key);
}
