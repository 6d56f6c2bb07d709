/**
 * @module
 * What others do between two statements of the store: each test lets it happen just there.
 */
import mysql from "mysql2/promise";
import { fromMysql2 } from "oncekey/stores/mysql";
import { describe, expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../../src/core/clock.js";
import { createConnections, type Session } from "../../../src/stores/mysql/connections.js";
import { openDatabase } from "../../../src/stores/mysql/database.js";
import { tablesOf } from "../../../src/stores/mysql/schema.js";
import { commitWork, prepareWork, takeConnection, type WorkPlace } from "../../../src/stores/mysql/work.js";
import { claimRequest } from "../../../src/testing/requests.js";
import { mariadbUrl } from "../support/servers.js";
import { freshPrefix, openPool, openRows, openStore, resultOf, transactionOf } from "./fixture.js";

const url = await mariadbUrl();
const WAIT_MS = 5_000;

async function openPlace() {
  const tablePrefix = freshPrefix();
  const { store } = await openStore(url, { tablePrefix });
  const driver = fromMysql2(mysql.createPool, url);
  const database = openDatabase({
    source: driver.records(),
    tables: tablesOf(tablePrefix),
    most: 2,
    timeoutMs: WAIT_MS,
    found: () => undefined,
  });
  const connections = createConnections({
    source: driver.work(),
    most: 2,
    prepare: (session) => prepareWork(session, "read-committed", WAIT_MS),
  });
  onTestFinished(async () => {
    await connections.close();
    await database.close();
  });
  const place: WorkPlace = {
    connections,
    database,
    clock: systemClock,
    waitMs: WAIT_MS,
    complete: store.complete,
    opened: () => undefined,
    ended: () => undefined,
  };
  return { store, place, rows: await openRows(openPool(url)) };
}

/** Lets something happen before the first statement that begins so. */
function before(session: Session, beginning: string, happen: () => Promise<unknown>): Session {
  let happened = false;
  return {
    ...session,
    async ask(sql, waitMs) {
      if (!happened && sql.startsWith(beginning)) {
        happened = true;
        await happen();
      }
      return session.ask(sql, waitMs);
    },
  };
}

describe("a record that is gone when its work commits", () => {
  it("is not made again over the claim of another: the work is replaced, and its rows are not kept", async () => {
    const { store, place, rows } = await openPlace();
    const mine = claimRequest({ guarantee: "exactly-once" });
    const other = { ...claimRequest({ guarantee: "exactly-once" }), key: mine.key };
    await store.claim(mine);
    const session = await takeConnection(place, 5_000);
    await session.ask(`INSERT INTO ${rows.table} VALUES ('${mine.key}', 0)`, WAIT_MS);
    await store.discard?.(mine.key);
    const raced = before(session, "INSERT IGNORE", () => store.claim(other));
    const answer = await commitWork(place, raced, transactionOf(mine), resultOf("done"), false);
    await session.ask("ROLLBACK", WAIT_MS);
    place.connections.leave(session);
    expect(answer).toMatchObject({ kind: "replaced" });
    expect(await rows.count(mine.key)).toBe(0);
    expect(await store.find(mine.key)).toMatchObject({ state: "claimed" });
  });

  it("is made again if nobody else has the key", async () => {
    const { store, place, rows } = await openPlace();
    const mine = claimRequest({ guarantee: "exactly-once" });
    await store.claim(mine);
    const session = await takeConnection(place, 5_000);
    await session.ask(`INSERT INTO ${rows.table} VALUES ('${mine.key}', 0)`, WAIT_MS);
    await store.discard?.(mine.key);
    const answer = await commitWork(place, session, transactionOf(mine), resultOf("done"), false);
    place.connections.leave(session);
    expect(answer).toEqual({ kind: "committed" });
    expect(await store.find(mine.key)).toMatchObject({ state: "completed" });
  });
});

describe("an answer to COMMIT that is lost", () => {
  it("and a record that has another token by then: the work is replaced", async () => {
    const { store, place } = await openPlace();
    const mine = claimRequest({ guarantee: "exactly-once" });
    const other = { ...claimRequest({ guarantee: "exactly-once" }), key: mine.key };
    await store.claim(mine);
    const session = await takeConnection(place, 5_000);
    const raced = before(session, "COMMIT", async () => {
      await session.ask("ROLLBACK", WAIT_MS);
      await store.discard?.(mine.key);
      await store.claim(other);
      throw Object.assign(new Error("Connection lost"), { code: "PROTOCOL_CONNECTION_LOST", fatal: true });
    });
    const answer = await commitWork(place, raced, transactionOf(mine), resultOf("done"), false);
    session.broken = true;
    place.connections.leave(session);
    expect(answer).toEqual({ kind: "replaced", by: undefined });
  });
});
