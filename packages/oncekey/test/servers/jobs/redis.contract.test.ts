import { bindJobContract } from "oncekey/testing";
import { describe, it } from "vitest";
import { openJobSubject } from "../../jobs/job-processes.js";
import { redisUrl } from "../support/servers.js";

const address = await redisUrl();

for (const scheduler of ["croner", "node-cron", "timer"] as const) {
  describe(scheduler, () => {
    bindJobContract(
      { describe: describe.concurrent, it: (name, run) => it(name, { timeout: 300_000 }, run) },
      { open: () => openJobSubject(scheduler, "redis", address) },
    );
  });
}
