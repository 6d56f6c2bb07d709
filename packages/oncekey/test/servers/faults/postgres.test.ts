import { afterAll, describe } from "vitest";
import { ownServer, postgresUrl } from "../support/servers.js";
import { clockSuite } from "./clocks.js";
import { crashSuite } from "./crashes.js";
import { outageSuite } from "./outages.js";
import { standstillSuite } from "./standstills.js";
import { stormSuite } from "./storms.js";
import { sharedSubject } from "./subject.js";
import { transactionSuite } from "./transactions.js";

const subject = await sharedSubject("postgres", await postgresUrl(), [
  "at-least-once",
  "at-most-once",
  "exactly-once",
]);
afterAll(subject.close);

describe.concurrent("Postgres", () => {
  crashSuite(subject);
  standstillSuite(subject);
  stormSuite(subject);
  clockSuite(subject);
  outageSuite(subject, () => ownServer("postgres"));
  transactionSuite(subject, postgresUrl);
});
