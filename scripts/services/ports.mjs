/**
 * @module scripts/services/ports
 *
 * Free ports of the loopback address, each handed out once by this process.
 *
 * They lie below the range from which operating systems take the ports of outgoing connections: a server that a test stops
 * finds its port free when it is started again, whoever connected to whatever meanwhile.
 */
import { createServer } from "node:net";

const lowest = 20_000;
const highest = 29_999;

/** @type {Set<number>} */
const handedOut = new Set();

/** @returns {Promise<number>} */
export async function freePort() {
  for (let attempt = 0; attempt < 200; attempt += 1) {
    const port = lowest + Math.floor(Math.random() * (highest - lowest + 1));
    if (handedOut.has(port) || !(await isFree(port))) continue;
    handedOut.add(port);
    return port;
  }
  throw new Error(`no free port between ${lowest} and ${highest} on 127.0.0.1`);
}

/** @param {number} port */
function isFree(port) {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", () => resolve(false));
    probe.listen({ port, host: "127.0.0.1", exclusive: true }, () => probe.close(() => resolve(true)));
  });
}
