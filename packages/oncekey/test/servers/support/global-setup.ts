/**
 * @module test/servers/support/global-setup
 *
 * Runs once before the test files that need servers, in the process that starts their workers, and ends what it started after
 * them. The workers ask it for servers over HTTP (`servers.ts`), so that what no file asks for is never started.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestProject } from "vitest/node";
import { prepareServers } from "../../../../../scripts/services.mjs";
import { isWanted, kindsToStart, sharedServers } from "./shared-servers.js";

declare module "vitest" {
  interface ProvidedContext {
    /** Where the workers ask for servers. */
    readonly sharedServers: string;
  }
}

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  // An installation takes longer than a hook may. What fails here is told to the files that ask for it.
  await Promise.allSettled(kindsToStart().map((kind) => prepareServers([kind])));
  const servers = sharedServers();
  const counter = createServer((request, response) => void answer(request, response));

  async function answer({ url = "" }: IncomingMessage, response: ServerResponse): Promise<void> {
    const wanted = url.slice(1);
    try {
      if (!isWanted(wanted)) throw new Error(`no server is called ${wanted}`);
      response.end(JSON.stringify(await servers.fresh(wanted)));
    } catch (error) {
      response.writeHead(500).end(error instanceof Error ? error.message : String(error));
    }
  }

  await new Promise<void>((resolve) => counter.listen(0, "127.0.0.1", resolve));
  const { port } = counter.address() as AddressInfo;
  project.provide("sharedServers", `http://127.0.0.1:${port}`);
  return async () => {
    counter.closeAllConnections();
    counter.close();
    await servers.close();
  };
}
