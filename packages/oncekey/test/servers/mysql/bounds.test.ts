/**
 * @module
 * Connections that are given back twice, and claims that come too late for their batch.
 */
import mysql from "mysql2/promise";
import { fromMysql2 } from "oncekey/stores/mysql";
import { describe, expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../../src/core/clock.js";
import { claimBatches } from "../../../src/stores/mysql/claims.js";
import { createConnections } from "../../../src/stores/mysql/connections.js";
import { openDatabase } from "../../../src/stores/mysql/database.js";
import { tablesOf } from "../../../src/stores/mysql/schema.js";
import { claimRequest } from "../../../src/testing/requests.js";
import { mariadbUrl } from "../support/servers.js";
import { freshPrefix, openStore } from "./fixture.js";

const url = await mariadbUrl();
const WAIT_MS = 5_000;

describe("a connection that is given back twice", () => {
  it("is one connection: nobody waits for it when the store closes", async () => {
    const connections = createConnections({
      source: fromMysql2(mysql.createPool, url).work(),
      most: 1,
      prepare: async () => undefined,
    });
    const session = await connections.enter(WAIT_MS);
    session.broken = true;
    connections.leave(session);
    connections.leave(session);
    const [next, second] = [connections.enter(WAIT_MS), connections.enter(100)];
    await expect(second).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
    connections.leave(await next);
    await connections.close();
    await expect(connections.enter(WAIT_MS)).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
  });
});

describe("a claim that is over before its batch is sent", () => {
  it("is not made with those that are not, and is told that it comes too late", async () => {
    const tablePrefix = freshPrefix();
    const { store } = await openStore(url, { tablePrefix });
    const database = openDatabase({
      source: fromMysql2(mysql.createPool, url).records(),
      tables: tablesOf(tablePrefix),
      most: 2,
      timeoutMs: WAIT_MS,
      found: () => undefined,
    });
    onTestFinished(() => database.close());
    const port = claimBatches(database);
    const [over, fresh] = [claimRequest(), claimRequest()];
    const nowMs = systemClock.monotonicMs();
    const late = { request: over, endsAtMs: nowMs - 800 };
    const answers = await port.send([late, { request: fresh, endsAtMs: nowMs + WAIT_MS }]);
    expect(answers.map((answer) => answer?.kind)).toEqual([undefined, "claimed"]);
    await expect(port.alone(late)).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
    await expect(port.send([late])).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
    expect(await store.find(over.key)).toBeUndefined();
  });
});
