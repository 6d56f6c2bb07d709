import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe } from "vitest";
import { crashSuite } from "./crashes.js";
import { standstillSuite } from "./standstills.js";
import { stormSuite } from "./storms.js";
import type { Subject } from "./subject.js";

const folder = mkdtempSync(join(tmpdir(), "oncekey-faults-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const subject: Subject = {
  storeName: "sqlite",
  address: () => join(folder, `${randomUUID()}.db`),
  guarantees: ["at-least-once", "at-most-once", "exactly-once"],
  writersExclude: true,
};

describe.concurrent("SQLite", () => {
  crashSuite(subject);
  standstillSuite(subject);
  stormSuite(subject);
});
