import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe } from "vitest";
import { crashSuite } from "./crashes.js";
import { standstillSuite } from "./standstills.js";
import { stormSuite } from "./storms.js";
import { separateSubject } from "./subject.js";

const folder = mkdtempSync(join(tmpdir(), "oncekey-faults-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const subject = separateSubject("sqlite", () => join(folder, `${randomUUID()}.db`), [
  "at-least-once",
  "at-most-once",
  "exactly-once",
]);

describe.concurrent("SQLite", () => {
  crashSuite(subject);
  standstillSuite(subject);
  stormSuite(subject);
});
