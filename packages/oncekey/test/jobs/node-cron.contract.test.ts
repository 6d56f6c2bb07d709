/** The processes of this contract fire "oncekey/jobs/node-cron" with its own scheduler, on one SQLite file. */
import { bindJobContract } from "oncekey/testing";
import { describe, it } from "vitest";
import { openJobSubject } from "./job-processes.js";

bindJobContract(
  { describe: describe.concurrent, it: (name, run) => it(name, { timeout: 240_000 }, run) },
  { open: () => openJobSubject("node-cron", "sqlite") },
);
