/**
 * @module
 * Where the scenes play: the API and the provider as two processes, a database in a temporary folder, customers.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Service, startService } from "../processes.js";
import type { Behaviour, Movement } from "../provider/ledger.js";
import { type Customer, createCustomer } from "./client.js";

/** Short, so that nobody has to watch a lease of 30 s run out. A service leaves it as it is. */
export const LEASE_MS = 2_000;

export interface Stage {
  readonly apiUrl: string;
  customer(name: string): Customer;
  /** SIGKILL. */
  killApi(): Promise<void>;
  /** A new process on the same port and the same file. */
  restartApi(): Promise<void>;
  readonly provider: ProviderSide;
  /** What the API has printed. */
  output(): string;
  close(): Promise<void>;
}

/** The provider, as only the demo may talk to it. */
export interface ProviderSide {
  /** What is not given is as it should be. */
  behave(behaviour: Partial<Behaviour>): Promise<void>;
  ledgerOf(customer: Customer): Promise<readonly Movement[]>;
  /** Waits until it has been asked to move money for `customer` so many times. */
  asked(customer: Customer, times: number): Promise<void>;
  /** Waits until it has lost all requests that it was told to lose. */
  lostAll(): Promise<void>;
}

export interface Staging {
  /** Sends every order to the route that oncekey does not protect. */
  readonly unprotected: boolean;
  /** The provider moves money twice where it should once. */
  readonly sabotage: boolean;
}

export async function openStage({ unprotected, sabotage }: Staging): Promise<Stage> {
  const folder = await mkdtemp(join(tmpdir(), "orders-api-"));
  const provider = await startService(
    "provider",
    { PORT: "0", MOVES_TWICE: sabotage ? "1" : "" },
    { quiet: true },
  );
  const env = {
    DATABASE: join(folder, "orders.sqlite"),
    PROVIDER_URL: provider.url,
    LEASE_MS: String(LEASE_MS),
  };
  const startApi = (port: string): Promise<Service> =>
    startService("api", { ...env, PORT: port }, { quiet: true });
  let api = await startApi("0");
  const apiUrl = api.url;
  let output = "";
  return {
    apiUrl,
    provider: providerSide(provider.url),
    customer: (name) => createCustomer(name, apiUrl, unprotected ? () => "/unprotected/payments" : undefined),
    async killApi() {
      await api.kill();
      output += `${api.output()}(killed)\n`;
    },
    async restartApi() {
      api = await startApi(new URL(apiUrl).port);
    },
    output: () => output + api.output(),
    async close() {
      await Promise.all([api.kill(), provider.kill()]);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function providerSide(url: string): ProviderSide {
  const get = async (path: string): Promise<unknown> => (await fetch(url + path)).json();
  const ledgerOf = async ({ name }: Customer) =>
    (await get(`/movements?customer=${name}`)) as readonly Movement[];
  return {
    ledgerOf,
    async behave(behaviour) {
      const headers = { "Content-Type": "application/json" };
      await fetch(`${url}/behaviour`, { method: "PUT", headers, body: JSON.stringify(behaviour) });
    },
    asked: (customer, times) =>
      until(
        `the provider was asked ${times} times`,
        async () => timesAsked(await ledgerOf(customer)) >= times,
      ),
    lostAll: () =>
      until("the request was lost", async () => ((await get("/behaviour")) as Behaviour).loseNext === 0),
  };
}

/** How many requests the provider answered with these movements. */
export function timesAsked(ledger: readonly Movement[]): number {
  return ledger.reduce((sum, { asked }) => sum + asked, 0);
}

const POLL_MS = 10;
const PATIENCE_MS = 15_000;

async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  for (const endsAt = performance.now() + PATIENCE_MS; !(await holds()); ) {
    if (performance.now() > endsAt)
      throw new Error(`Waited for ${PATIENCE_MS / 1_000} s in vain until ${what}.`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}
