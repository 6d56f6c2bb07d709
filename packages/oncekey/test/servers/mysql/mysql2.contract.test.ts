import mysql from "mysql2";
import { fromMysql2 } from "oncekey/stores/mysql";
import { bindStoreContract } from "oncekey/testing";
import { afterAll, describe, it } from "vitest";
import { mariadbUrl } from "../support/servers.js";
import { openMysqlSubject, outsiderOf } from "./mysql-subject.js";

const url = await mariadbUrl();
const outsider = outsiderOf(url);
const pool = mysql.createPool(url);

afterAll(async () => {
  await outsider.end();
  pool.end();
});

bindStoreContract(
  { describe, it },
  { open: () => openMysqlSubject(outsider, () => fromMysql2(pool)), raceRounds: 30 },
);
