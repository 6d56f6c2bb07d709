import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type FaultProxy, faultProxy } from "./fault-proxy.js";

let heard: string[];
let proxy: FaultProxy;
let closeServer: () => void;

/** A server that answers each piece with the same in capitals, and remembers what arrived. */
beforeEach(async () => {
  heard = [];
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.on("data", (piece) => {
      heard.push(piece.toString());
      socket.write(piece.toString().toUpperCase());
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  closeServer = () => server.close();
  const { port } = server.address() as AddressInfo;
  proxy = await faultProxy(`tcp://127.0.0.1:${port}`);
});

afterEach(async () => {
  await proxy.close();
  closeServer();
});

async function open(): Promise<Socket> {
  const socket = connect(proxy.port, "127.0.0.1").on("error", () => {});
  await once(socket, "connect");
  return socket;
}

/** The server's answer, or `"cut"`. */
async function say(socket: Socket, text: string): Promise<string> {
  const answer = once(socket, "data").then(([piece]) => String(piece));
  const cut = new Promise<string>((resolve) => socket.once("close", () => resolve("cut")));
  socket.on("error", () => {});
  socket.write(text);
  return Promise.race([answer.catch(() => cut), cut]);
}

test("passes on what is said, both ways, and counts it", async () => {
  const socket = await open();
  expect(await say(socket, "one")).toBe("ONE");
  expect(await say(socket, "two")).toBe("TWO");
  expect(proxy.counts()).toEqual({ connections: 1, clientPackets: 2, roundTrips: 2 });
  proxy.resetCounts();
  expect(proxy.counts()).toEqual({ connections: 0, clientPackets: 0, roundTrips: 0 });
});

test("two pieces before an answer are one round trip", async () => {
  proxy.slow(30);
  const socket = await open();
  socket.write("a");
  while (proxy.counts().clientPackets === 0) await sleep(1);
  socket.write("b");
  await once(socket, "data");
  expect(proxy.counts()).toMatchObject({ clientPackets: 2, roundTrips: 1 });
});

test("cut before: the request has not arrived", async () => {
  const sprung = proxy.cutBeforeNext((request) => request.includes("commit"));
  const socket = await open();
  expect(await say(socket, "begin")).toBe("BEGIN");
  expect(await say(socket, "commit")).toBe("cut");
  await sprung;
  expect(heard).toEqual(["begin"]);
  expect(await say(await open(), "commit")).toBe("COMMIT");
});

test("cut after: the request has arrived, its answer has not", async () => {
  const sprung = proxy.cutAfterNext((request) => request.includes("commit"));
  const socket = await open();
  expect(await say(socket, "begin")).toBe("BEGIN");
  expect(await say(socket, "commit")).toBe("cut");
  await sprung;
  expect(heard).toEqual(["begin", "commit"]);
});

test("cut all: connections that are there end, new ones can be made", async () => {
  const socket = await open();
  expect(await say(socket, "one")).toBe("ONE");
  const cut = say(socket, "two");
  proxy.cutAll();
  expect(await cut).toBe("cut");
  expect(await say(await open(), "three")).toBe("THREE");
});

test("refused: no new connection until it flows again", async () => {
  proxy.refuse();
  const socket = connect(proxy.port, "127.0.0.1");
  expect(await say(socket, "one")).toBe("cut");
  proxy.flow();
  expect(await say(await open(), "two")).toBe("TWO");
  expect(heard).toEqual(["two"]);
});

test("half-open: silence, and then what was said", async () => {
  const socket = await open();
  expect(await say(socket, "one")).toBe("ONE");
  proxy.stall();
  const late = say(socket, "two");
  await sleep(60);
  expect(heard).toEqual(["one"]);
  proxy.flow();
  expect(await late).toBe("TWO");
});

test("slow: each piece waits, in its order", async () => {
  const socket = await open();
  proxy.slow(40);
  const startedAt = performance.now();
  expect(await say(socket, "one")).toBe("ONE");
  expect(performance.now() - startedAt).toBeGreaterThanOrEqual(75);
});

test("names the server's address with its own port", () => {
  expect(proxy.url).toBe(`tcp://127.0.0.1:${proxy.port}`);
});
