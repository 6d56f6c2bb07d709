/**
 * @module
 * A load generator that costs little: raw sockets, prepared bytes, one request under way on each connection.
 *
 * Invariants: it counts only whole answers, by their Content-Length or final chunk, and how many had which status. It never
 * sleeps while it measures. A client that sleeps has to be woken by the server, in the server's own time; how often depends on
 * which of the two is faster, so that a server which takes a little longer would pay several times over, and the quickest
 * (whose clients always have something to read) nothing. Real clients are on other machines.
 */
import { connect } from "node:net";

/**
 * One HTTP/1.1 client on one socket.
 *
 * @param {number} port
 */
export function openClient(port) {
  const socket = connect(port, "127.0.0.1");
  socket.setNoDelay(true);
  let received = Buffer.alloc(0);
  let answered = () => {};
  let failed = () => {};
  socket.on("data", (chunk) => {
    received = received.length === 0 ? chunk : Buffer.concat([received, chunk]);
    const end = messageEnd(received);
    if (end === -1) return;
    const status = Number(received.toString("latin1", 9, 12));
    const replayed = received.includes("dempotency-Replayed");
    received = received.subarray(end);
    answered({ status, replayed });
  });
  socket.on("error", (error) => failed(error));
  socket.on("close", () => failed(new Error("The server closed the connection")));
  return {
    /**
     * @param {Buffer} request
     * @returns {Promise<{ status: number, replayed: boolean }>}
     */
    send(request) {
      return new Promise((resolve, reject) => {
        answered = resolve;
        failed = reject;
        socket.write(request);
      });
    },
    close() {
      failed = () => {};
      socket.destroy();
    },
  };
}

/** Where the first message in `bytes` ends, or -1 while it is not whole. */
function messageEnd(bytes) {
  const head = bytes.indexOf("\r\n\r\n");
  if (head === -1) return -1;
  const text = bytes.toString("latin1", 0, head).toLowerCase();
  const length = /\r\ncontent-length: (\d+)/.exec(text);
  if (length !== null) {
    const end = head + 4 + Number(length[1]);
    return bytes.length >= end ? end : -1;
  }
  const last = bytes.indexOf("0\r\n\r\n", head + 4);
  return last === -1 ? -1 : last + 5;
}

/**
 * A request with a JSON body, as bytes.
 *
 * @param {string} path
 * @param {string} body
 * @param {string | undefined} key
 */
export function requestBytes(path, body, key) {
  const keyLine = key === undefined ? "" : `Idempotency-Key: ${key}\r\n`;
  const head = `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n${keyLine}`;
  return Buffer.from(`${head}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
}

/**
 * Keeps the event loop turning, so that it never blocks in the kernel, until the returned function is called.
 *
 * @returns {() => void}
 */
export function stayAwake() {
  let over = false;
  const turn = () => {
    if (!over) setImmediate(turn);
  };
  turn();
  return () => {
    over = true;
  };
}

/**
 * Keeps `connections` clients busy for `forMs`.
 *
 * @param {{ port: number, connections: number, forMs: number, next: () => Buffer }} options
 */
export async function load({ port, connections, forMs, next }) {
  const clients = Array.from({ length: connections }, () => openClient(port));
  const endsMs = performance.now() + forMs;
  const latencies = [];
  const statuses = new Map();
  let replays = 0;
  const sleep = stayAwake();
  const beganMs = performance.now();
  await Promise.all(
    clients.map(async (client) => {
      for (let nowMs = beganMs; nowMs < endsMs; ) {
        const { status, replayed } = await client.send(next());
        const answeredMs = performance.now();
        latencies.push(answeredMs - nowMs);
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
        if (replayed) replays += 1;
        nowMs = answeredMs;
      }
    }),
  );
  const tookMs = performance.now() - beganMs;
  sleep();
  for (const client of clients) client.close();
  latencies.sort((a, b) => a - b);
  return {
    requests: latencies.length,
    perSecond: (latencies.length / tookMs) * 1000,
    p50Ms: latencies[Math.floor(latencies.length * 0.5)] ?? 0,
    p99Ms: latencies[Math.floor(latencies.length * 0.99)] ?? 0,
    statuses: Object.fromEntries(statuses),
    replays,
  };
}
