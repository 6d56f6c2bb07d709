/**
 * @module
 * What the two server processes share: they listen on the loopback address, say where, and do not outlive who started them.
 */
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Express } from "express";

/**
 * Listens and tells the parent process, if there is one, the URL.
 *
 * @param port 0 takes a free one.
 */
export async function listen(app: Express, port: number): Promise<Server> {
  const server = app.listen(port, "127.0.0.1");
  await new Promise<void>((resolve, reject) => {
    server.once("listening", resolve);
    server.once("error", reject);
  });
  const { port: actual } = server.address() as AddressInfo;
  process.send?.({ url: `http://127.0.0.1:${actual}` });
  // The channel closes when the parent ends, in whatever way.
  process.once("disconnect", () => process.exit());
  return server;
}

/** A setting from the environment that has to be a whole number. */
export function numberFrom(name: string, fallback: number): number {
  const text = process.env[name];
  if (text === undefined || text === "") return fallback;
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 0)
    throw new Error(`${name} must be a whole number, not ${text}`);
  return value;
}
