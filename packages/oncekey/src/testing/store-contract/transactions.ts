/**
 * @module
 * The contract of exactly-once: rows and completion are there together, or neither is.
 */
import type { ClaimRequest, Store, TransactionSession } from "../../core/store.js";
import { claimRequest, identityOf, repeatOf } from "../requests.js";
import { equal, has, kind, ok, refuses } from "./check.js";
import { type ContractRows, group, SHORT_MS, type StoreContext } from "./context.js";
import { completion, outcome, releaseOf } from "./scenes.js";

const PAID = outcome("paid 10");

export const transactions = group("transactions", [
  {
    name: "rows and completion commit together",
    why: "The charge without its record is charged again; the record without the charge is never charged.",
    async run(context) {
      const { store, request, session, rows } = await begun(context);
      equal(session.used(), false, "used before its first statement");
      await rows.write(session.handle, request.key);
      equal(session.used(), true, "used after it");
      equal(await session.commit(PAID, "everything"), { kind: "committed" }, "commit");
      equal(await rows.count(request.key), 1, "rows");
      has(await store.claim(repeatOf(request)), { kind: "completed", outcome: PAID }, "a repeat");
    },
  },
  {
    name: "a rollback leaves nothing but the claim",
    why: "A failed attempt would leave half of its rows.",
    async run(context) {
      const { store, request, session, rows } = await begun(context);
      await rows.write(session.handle, request.key);
      await session.rollback();
      await session.rollback();
      equal(await rows.count(request.key), 0, "rows");
      has(await store.claim(repeatOf(request)), { kind: "in-flight", holder: request.token }, "a repeat");
      equal(await store.release(releaseOf(request)), { kind: "released" }, "its holder");
    },
  },
  {
    name: "the completion can be kept without the rows",
    why: "A refusal (402) is an answer to keep, and its half-written rows are not.",
    async run(context) {
      const { store, request, session, rows } = await begun(context);
      await rows.write(session.handle, request.key);
      equal(await session.commit(PAID, "record"), { kind: "committed" }, "commit of the record");
      equal(await rows.count(request.key), 0, "rows");
      has(await store.claim(repeatOf(request)), { kind: "completed", outcome: PAID }, "a repeat");
    },
  },
  {
    name: "a former holder commits nothing",
    why: "A process that wakes after its lease would charge beside its successor.",
    async run(context) {
      const { store, lapse } = context;
      const { request, session, rows } = await begun(context, { leaseMs: SHORT_MS });
      await lapse();
      const successor = repeatOf(request);
      kind(await store.claim(successor), "claimed", "the takeover");
      await rows.write(session.handle, request.key);
      equal(await session.commit(PAID, "everything"), { kind: "replaced", by: undefined }, "while it runs");
      equal(await rows.count(request.key), 0, "rows");

      await store.complete(completion(successor, "by the successor", 2));
      const late = sessionOf(store, request);
      await rows.write(late.handle, request.key);
      equal(
        await late.commit(PAID, "everything"),
        { kind: "replaced", by: { token: successor.token, outcome: outcome("by the successor") } },
        "once it is done",
      );
      equal(await rows.count(request.key), 0, "rows");
    },
  },
  {
    name: "rows are not committed a second time for a token that has completed",
    why: "A commit whose answer was lost is repeated with new rows.",
    async run(context) {
      const { store, request, session, rows } = await begun(context);
      await rows.write(session.handle, request.key);
      await session.commit(PAID, "everything");
      const again = sessionOf(store, request);
      await rows.write(again.handle, request.key);
      const answer = await again.commit(outcome("paid twice"), "everything");
      ok(answer.kind !== "committed", "committed twice");
      equal(await rows.count(request.key), 1, "rows");
      has(await store.claim(repeatOf(request)), { kind: "completed", outcome: PAID }, "a repeat");
    },
  },
  {
    name: "work that wrote nothing completes all the same",
    why: "Whoever answers without a statement would stay in flight.",
    async run(context) {
      const { store, request, session } = await begun(context);
      equal(await session.commit(PAID, "everything"), { kind: "committed" }, "commit");
      equal(session.used(), false, "used");
      has(await store.claim(repeatOf(request)), { kind: "completed", outcome: PAID }, "a repeat");
    },
  },
  {
    name: "a transaction that has ended takes no more statements",
    why: "A statement that nobody awaited would be committed on its own.",
    async run(context) {
      const { store, request, session, rows } = await begun(context);
      await rows.write(session.handle, request.key);
      await session.commit(PAID, "everything");
      const late = () => rows.write(session.handle, `${request.key}-late`);
      await refuses(late, "TRANSACTION_CLOSED", "a statement after commit");
      await session.rollback();
      equal(await rows.count(request.key), 1, "rows after a rollback that came too late");

      const rolledBack = sessionOf(store, await claimed(store));
      await rows.write(rolledBack.handle, request.key);
      await rolledBack.rollback();
      await refuses(() => rows.write(rolledBack.handle, request.key), "TRANSACTION_CLOSED", "after rollback");
      equal([await rows.count(request.key), await rows.count(`${request.key}-late`)], [1, 0], "rows");
    },
  },
  {
    name: "a transaction that stays open too long is rolled back",
    why: "Work that waits for the outside world would hold locks, and everybody with them.",
    async run(context) {
      const { store, request, session, rows } = await begun(context, {}, SHORT_MS);
      await rows.write(session.handle, request.key);
      await context.lapse();
      has(await session.commit(PAID, "everything"), { kind: "refused" }, "commit, too late");
      equal(await rows.count(request.key), 0, "rows");
      has(await store.claim(repeatOf(request)), { kind: "in-flight", holder: request.token }, "a repeat");
    },
  },
  {
    name: "a record that vanished meanwhile is made again with the rows",
    why: "A purge would undo work that is done.",
    async run({ store, rows }) {
      ok(rows, "the binding gives no rows");
      const request = claimRequest({ guarantee: "exactly-once" });
      const session = sessionOf(store, request);
      await rows.write(session.handle, request.key);
      equal(await session.commit(PAID, "everything"), { kind: "committed" }, "commit");
      equal(await rows.count(request.key), 1, "rows");
      has(
        await store.claim(repeatOf(request)),
        { kind: "completed", completedBy: request.token },
        "a repeat",
      );
    },
  },
  {
    name: "an open transaction neither loses nor blocks the claims of others",
    why: "A rollback would take strangers' claims with it, or the process would stand still until it ends.",
    async run(context) {
      const { store, request, session, rows } = await begun(context);
      await rows.write(session.handle, request.key);
      const stranger = claimRequest();
      const claim = store.claim(stranger);
      const repeat = store.claim(repeatOf(request));
      await session.rollback();
      has(await claim, { kind: "claimed", attempt: 1 }, "a stranger's claim");
      has(await repeat, { kind: "in-flight", holder: request.token }, "a repeat");
      equal(await store.extend(stranger), { kind: "extended" }, "the stranger afterwards");
    },
  },
  {
    name: "transactions of one process all get their turn",
    why: "The second would wait for the first, and the first for the second.",
    async run(context) {
      const { store, rows } = context;
      ok(rows, "the binding gives no rows");
      const requests = await Promise.all(Array.from({ length: 5 }, () => claimed(store)));
      const answers = await Promise.all(
        requests.map(async (request) => {
          const session = sessionOf(store, request);
          await rows.write(session.handle, request.key);
          return session.commit(PAID, "everything");
        }),
      );
      for (const answer of answers) equal(answer, { kind: "committed" }, "each commit");
      for (const { key } of requests) equal(await rows.count(key), 1, "its rows");
    },
  },
]);

async function claimed(store: Store, parts: Partial<ClaimRequest> = {}): Promise<ClaimRequest> {
  const request = claimRequest({ guarantee: "exactly-once", ...parts });
  kind(await store.claim(request), "claimed", "the claim");
  return request;
}

function sessionOf(
  store: Store,
  request: ClaimRequest,
  maxTransactionMs = 5_000,
): TransactionSession<unknown> {
  ok(store.begin, "the store has no transactions");
  return store.begin({ ...identityOf(request), attempt: 1, maxTransactionMs });
}

interface Begun {
  readonly store: Store;
  readonly request: ClaimRequest;
  readonly session: TransactionSession<unknown>;
  readonly rows: ContractRows<unknown>;
}

async function begun(
  { store, rows }: StoreContext,
  parts: Partial<ClaimRequest> = {},
  maxTransactionMs?: number,
): Promise<Begun> {
  const request = await claimed(store, parts);
  const session = sessionOf(store, request, maxTransactionMs);
  ok(rows, "the binding gives no rows");
  return { store, request, session, rows };
}
