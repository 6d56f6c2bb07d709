import { bindJobContract } from "oncekey/testing";
import { afterAll, describe, it } from "vitest";
import { openJobSubject } from "../../jobs/job-processes.js";
import { storeKinds } from "../faults/apps/stores.mjs";
import { postgresUrl } from "../support/servers.js";

const address = await postgresUrl();
// Makes the tables, so that four processes do not all do so at once.
const outsider = await storeKinds.postgres.outside(address);
afterAll(outsider.close);

for (const scheduler of ["croner", "node-cron", "timer"] as const) {
  describe(scheduler, () => {
    bindJobContract(
      { describe: describe.concurrent, it: (name, run) => it(name, { timeout: 300_000 }, run) },
      { open: () => openJobSubject(scheduler, "postgres", address) },
    );
  });
}
