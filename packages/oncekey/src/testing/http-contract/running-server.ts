/**
 * @module
 * Starts any server that is made of a `node:http` one, which most frameworks' are.
 */
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { RunningServer } from "./context.js";

/** Lets `server` listen on 127.0.0.1, on a free port. */
export async function startServer(server: Server): Promise<RunningServer> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
