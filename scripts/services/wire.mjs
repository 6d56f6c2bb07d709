/**
 * @module scripts/services/wire
 *
 * Says a few words to a server without a client library: enough to see that it is ready, and to join Redis nodes.
 * Whatever fails is an `Error` of the one attempt; who waits for a server asks again.
 */
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/**
 * Sends bytes on a new connection and returns the first that come back.
 *
 * @param {number} port
 * @param {string | Buffer} request empty if the server speaks first
 * @param {(answer: Buffer) => boolean} isComplete
 * @returns {Promise<Buffer>}
 */
export function ask(port, request, isComplete = (answer) => answer.length > 0) {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: "127.0.0.1" });
    /** @type {Buffer[]} */
    const received = [];
    const settle = (/** @type {() => void} */ how) => {
      socket.destroy();
      how();
    };
    socket.setTimeout(2_000, () => settle(() => reject(new Error("no answer within 2 s"))));
    socket.on("error", (error) => settle(() => reject(error)));
    socket.on("close", () => reject(new Error("the connection was closed")));
    socket.on("connect", () => socket.write(request));
    socket.on("data", (bytes) => {
      received.push(bytes);
      const answer = Buffer.concat(received);
      if (isComplete(answer)) settle(() => resolve(answer));
    });
  });
}

/**
 * @param {number} port
 * @param {string} command in Redis' inline form
 * @returns {Promise<string>} the answer as it came, without its last line end
 */
export async function askRedis(port, command) {
  const answer = await ask(port, `${command}\r\n`, isWholeReply);
  const text = answer.toString().trimEnd();
  if (text.startsWith("-")) throw new Error(`${command}: ${text.slice(1)}`);
  return text;
}

/** @param {Buffer} answer */
function isWholeReply(answer) {
  const firstEnd = answer.indexOf("\r\n");
  if (firstEnd < 0) return false;
  if (answer[0] !== 0x24) return true;
  return answer.length >= firstEnd + 2 + Number(answer.subarray(1, firstEnd)) + 2;
}

/**
 * Asks again and again until it holds.
 *
 * @param {() => Promise<boolean>} holds a rejection counts as "not yet"
 * @param {{ timeoutMs: number, what: string, isHopeless?: () => string | undefined }} options `isHopeless` says why waiting
 *   longer makes no sense
 */
export async function until(holds, { timeoutMs, what, isHopeless = () => undefined }) {
  const deadline = performance.now() + timeoutMs;
  /** @type {unknown} */
  let last;
  while (performance.now() < deadline) {
    try {
      if (await holds()) return;
      last = undefined;
    } catch (error) {
      last = error;
    }
    const hopeless = isHopeless();
    if (hopeless !== undefined) throw new Error(`${what}: ${hopeless}`);
    await sleep(25);
  }
  const why = last instanceof Error ? ` (${last.message})` : "";
  throw new Error(`${what}: not within ${timeoutMs / 1_000} s${why}`);
}
