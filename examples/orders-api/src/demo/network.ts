/**
 * @module
 * A network that carries requests and loses their answers: the connection breaks when the first byte comes back.
 */
import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";

export interface LossyNetwork {
  /** Leads to the same server. */
  readonly url: string;
  close(): void;
}

export async function lossyNetworkTo(url: string): Promise<LossyNetwork> {
  const { hostname, port } = new URL(url);
  const relay = createServer((client) => {
    const server = connect(Number(port), hostname);
    client.pipe(server);
    server.once("data", () => {
      client.resetAndDestroy();
      server.destroy();
    });
    for (const socket of [client, server]) socket.on("error", () => undefined);
  });
  relay.listen(0, "127.0.0.1");
  await once(relay, "listening");
  const { port: own } = relay.address() as AddressInfo;
  return { url: `http://127.0.0.1:${own}`, close: () => void relay.close() };
}
