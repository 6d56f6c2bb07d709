import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe } from "vitest";
import { stepSuite } from "../support/step-suite.js";

const folder = mkdtempSync(join(tmpdir(), "oncekey-steps-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe.concurrent("SQLite", () => {
  stepSuite("sqlite", join(folder, "steps.db"), ["at-least-once", "exactly-once"]);
});
