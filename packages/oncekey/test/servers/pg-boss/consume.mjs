/**
 * @module test/servers/pg-boss/consume
 *
 * Workers of pg-boss, in whichever process. Maintenance runs often, so that what a killed process held comes again soon.
 */

import { handleOnce } from "oncekey/consumers/pg-boss";
import PgBoss from "pg-boss";

const WORKERS = 2;
const MAINTENANCE_MS = 500;

/** @type {import("../support/consumers/crashing.mjs").Consume} */
export async function consume({ place, idempotency, options, key, handler }) {
  const { url, schema, queue } = JSON.parse(place);
  const boss = new PgBoss({ connectionString: url, schema, supervise: false, schedule: false, max: 4 });
  boss.on("error", () => {});
  await boss.start();
  /** @typedef {import("oncekey/testing").ContractMessage} Message */
  const handle = handleOnce(
    idempotency,
    boss,
    {
      ...options,
      deadLetter: `${queue}-dead`,
      key: (/** @type {import("oncekey/consumers/pg-boss").PgBossJob<Message>} */ job) => key(job.data),
    },
    (job, work) => handler(job.data, work),
  );
  const work = { batchSize: 3, pollingIntervalSeconds: 0.5 };
  for (let count = 0; count < WORKERS; count += 1) await boss.work(queue, work, handle);
  const maintenance = setInterval(() => void boss.maintain().catch(() => {}), MAINTENANCE_MS);
  return {
    async stop() {
      clearInterval(maintenance);
      await boss.stop({ graceful: true, wait: true, timeout: 5_000 });
    },
  };
}
