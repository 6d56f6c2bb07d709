/**
 * @module
 * `npm start`: the provider and the API as two processes, and lines to copy into another terminal.
 */
import { randomBytes } from "node:crypto";
import { createServer } from "node:net";
import { startService } from "./processes.js";
import { numberFrom } from "./service.js";

const port = await freePort(numberFrom("PORT", 3000));
const provider = await startService("provider", { PORT: "0" }, { quiet: false });
const api = await startService(
  "api",
  { PORT: String(port), PROVIDER_URL: provider.url, DATABASE: process.env.DATABASE ?? "orders.sqlite" },
  { quiet: false },
);
// Ctrl-C reaches the children as well; the API ends when its work is done, the provider at once.
for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.once(signal, () => void api.stop().then(provider.stop));
printLines(api.url, provider.url);
await api.ended;
await provider.stop();

/** The port one asked for, or 0, which takes any, if somebody else has it. */
async function freePort(wanted: number): Promise<number> {
  const probe = createServer().listen(wanted, "127.0.0.1");
  const free = await new Promise<boolean>((resolve) => {
    probe.once("listening", () => resolve(true));
    probe.once("error", () => resolve(false));
  });
  if (free) await new Promise((resolve) => probe.close(resolve));
  return free ? wanted : 0;
}

/** The older way of writing `--json`, which every curl knows. */
function json(body: unknown): string {
  return `-H 'Content-Type: application/json' -d '${JSON.stringify(body)}'`;
}

function printLines(url: string, providerUrl: string): void {
  // A new key for each start: the database keeps those of yesterday.
  const key = `order-${randomBytes(3).toString("hex")}`;
  const post = (path: string, customer: string, orderKey: string, amount: number): string =>
    `curl -i ${url}${path} -H 'Authorization: Bearer ${customer}' -H 'Idempotency-Key: ${orderKey}' ${json({ item: "tea", amount })}`;
  console.log(`
The orders API listens on ${url}, the payment provider on ${providerUrl}.

Pay, and send the line once more: the second answer is the first one, and says Idempotency-Replayed.
  ${post("/payments", "alice", key, 4_200)}

The same key with another amount is refused. The same key of another customer is another payment.
  ${post("/payments", "alice", key, 9_900)}
  ${post("/payments", "bob", key, 4_200)}

The provider fails once: the first line gets 502, the second 201.
  curl -X PUT ${providerUrl}/behaviour ${json({ refuseNext: 1 })}
  ${post("/payments", "alice", `${key}-b`, 800)}
  ${post("/payments", "alice", `${key}-b`, 800)}

At most once, with a provider that knows no keys; exactly once, with rows that add up.
  ${post("/transfers", "alice", key, 1_500)}
  ${post("/orders", "alice", key, 2_500)}

What the API has in its books, and what the provider really moved.
  curl ${url}/orders -H 'Authorization: Bearer alice'
  curl '${providerUrl}/movements?customer=alice'

Ctrl-C ends both.
`);
}
