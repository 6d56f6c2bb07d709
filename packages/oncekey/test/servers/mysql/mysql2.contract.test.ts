import mysql from "mysql2";
import { fromMysql2 } from "oncekey/stores/mysql";
import { bindStoreContract } from "oncekey/testing";
import { afterAll, describe, it } from "vitest";
import { mariadbUrl, mysqlUrl } from "../support/servers.js";
import { openMysqlSubject, outsiderOf } from "./mysql-subject.js";

/** MySQL itself where the environment has the address of one. */
const servers = [
  ["MariaDB", await mariadbUrl()],
  ["MySQL", await mysqlUrl()],
] as const;

for (const [name, url] of servers) {
  if (url === undefined) continue;
  const outsider = outsiderOf(url);
  const pool = mysql.createPool(url);
  afterAll(async () => {
    await outsider.end();
    pool.end();
  });
  describe(name, () => {
    bindStoreContract({ describe, it }, { open: () => openMysqlSubject(outsider, () => fromMysql2(pool)) });
  });
}
