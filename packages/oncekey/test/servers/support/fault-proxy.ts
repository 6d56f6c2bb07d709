/**
 * @module test/servers/support/fault-proxy
 *
 * Stands between a client and a server and lets the network between them fail on demand: connections cut before or after a request
 * has arrived, refused, half open, slow. It moves bytes and knows no protocol; a request is what the client sent in one piece.
 */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** Which requests a cut is meant for: those whose bytes it says yes to. */
type Match = (request: Buffer) => boolean;

interface TrafficCounts {
  readonly connections: number;
  /** Pieces in which clients sent their bytes. */
  readonly clientPackets: number;
  /** Times that a client spoke after the server had (or first): what a client waits for one by one. */
  readonly roundTrips: number;
}

export interface FaultProxy {
  readonly port: number;
  /** The server's address with the proxy's port in it. */
  readonly url: string;
  readonly counts: () => TrafficCounts;
  readonly resetCounts: () => void;
  /** Cuts all connections that are there. New ones can be made. */
  readonly cutAll: () => void;
  /** New connections are closed at once, until `flow()`. */
  readonly refuse: () => void;
  /** Nothing passes in either direction, and nobody is told: half-open, until `flow()`. */
  readonly stall: () => void;
  /** Each piece waits this long before it goes on, until `flow()`. */
  readonly slow: (delayMs: number) => void;
  /** All is well again. */
  readonly flow: () => void;
  /** The next request that matches is not forwarded: its connection is cut. Resolves when that has happened. */
  readonly cutBeforeNext: (matches?: Match) => Promise<void>;
  /** The next request that matches is forwarded, and its connection cut as soon as the server answers. Resolves then. */
  readonly cutAfterNext: (matches?: Match) => Promise<void>;
  /** The next request that matches waits for `act`, and then goes on. */
  readonly actBeforeNext: (matches: Match, act: () => Promise<void>) => void;
  readonly close: () => Promise<void>;
}

type Way = "client" | "server";

interface Connection {
  readonly client: Socket;
  readonly server: Socket;
  lastSpoke: Way | undefined;
  /** Set while a request whose answer must not arrive is with the server. */
  cutOnAnswer: (() => void) | undefined;
}

interface Trap {
  readonly when: "before" | "after";
  readonly matches: Match;
  readonly sprung: () => void;
}

/** @param serverUrl with a port, of whatever protocol */
export async function faultProxy(serverUrl: string): Promise<FaultProxy> {
  const connections = new Set<Connection>();
  const traps: Trap[] = [];
  const acts: { readonly matches: Match; readonly act: () => Promise<void> }[] = [];
  const gate = createGate();
  let refusing = false;
  let delayMs = 0;
  let counts: TrafficCounts = { connections: 0, clientPackets: 0, roundTrips: 0 };

  function count(connection: Connection, from: Way): void {
    if (from === "client") {
      const turned = connection.lastSpoke !== "client";
      counts = {
        ...counts,
        clientPackets: counts.clientPackets + 1,
        roundTrips: counts.roundTrips + (turned ? 1 : 0),
      };
    }
    connection.lastSpoke = from;
  }

  /** @returns whether the piece may go on */
  function passes(connection: Connection, from: Way, piece: Buffer): boolean {
    if (from === "server") {
      connection.cutOnAnswer?.();
      return connection.cutOnAnswer === undefined;
    }
    const index = traps.findIndex(({ matches }) => matches(piece));
    const [trap] = index < 0 ? [] : traps.splice(index, 1);
    if (trap === undefined) return true;
    const cut = () => {
      sever(connection);
      trap.sprung();
    };
    if (trap.when === "after") {
      connection.cutOnAnswer = cut;
      return true;
    }
    cut();
    return false;
  }

  async function heldBack(from: Way, piece: Buffer): Promise<void> {
    await gate.open();
    if (delayMs > 0) await sleep(delayMs);
    if (from === "server") return;
    const index = acts.findIndex(({ matches }) => matches(piece));
    if (index >= 0) await acts.splice(index, 1)[0]?.act();
  }

  async function forward(connection: Connection, from: Way): Promise<void> {
    const [source, target] =
      from === "client" ? [connection.client, connection.server] : [connection.server, connection.client];
    try {
      for await (const piece of source as AsyncIterable<Buffer>) {
        count(connection, from);
        await heldBack(from, piece);
        if (!passes(connection, from, piece)) return;
        if (!target.write(piece)) await once(target, "drain");
      }
      target.end();
    } catch {
      sever(connection);
    }
  }

  function sever(connection: Connection): void {
    connections.delete(connection);
    connection.client.resetAndDestroy();
    connection.server.resetAndDestroy();
  }

  const listener = createServer({ noDelay: true }, (client) => {
    // Who is cut off hears of it by an error, of which the loops above know already.
    client.on("error", () => {});
    if (refusing) {
      client.resetAndDestroy();
      return;
    }
    const { hostname, port } = new URL(serverUrl);
    const server = connect({ host: hostname, port: Number(port), noDelay: true }).on("error", () => {});
    const connection: Connection = { client, server, lastSpoke: undefined, cutOnAnswer: undefined };
    connections.add(connection);
    counts = { ...counts, connections: counts.connections + 1 };
    client.once("close", () => connections.delete(connection));
    void forward(connection, "client");
    void forward(connection, "server");
  });
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  const { port } = listener.address() as AddressInfo;

  const trap = (when: Trap["when"], matches: Match) =>
    new Promise<void>((sprung) => traps.push({ when, matches, sprung }));
  const cutAll = () => {
    for (const connection of connections) sever(connection);
  };
  const flow = () => {
    refusing = false;
    delayMs = 0;
    gate.unlock();
  };
  return {
    port,
    url: withPort(serverUrl, port),
    counts: () => counts,
    resetCounts: () => {
      counts = { connections: 0, clientPackets: 0, roundTrips: 0 };
    },
    cutAll,
    refuse: () => {
      refusing = true;
    },
    stall: gate.lock,
    slow: (ms) => {
      delayMs = ms;
    },
    flow,
    cutBeforeNext: (matches = () => true) => trap("before", matches),
    cutAfterNext: (matches = () => true) => trap("after", matches),
    actBeforeNext: (matches, act) => void acts.push({ matches, act }),
    close: async () => {
      cutAll();
      flow();
      listener.close();
      await once(listener, "close");
    },
  };
}

/** What all pieces wait for: open most of the time. */
function createGate() {
  let opened: Promise<void> = Promise.resolve();
  let unlock = () => {};
  return {
    open: () => opened,
    lock: () => {
      unlock();
      opened = new Promise((resolve) => {
        unlock = resolve;
      });
    },
    unlock: () => unlock(),
  };
}

function withPort(serverUrl: string, port: number): string {
  const url = new URL(serverUrl);
  url.hostname = "127.0.0.1";
  url.port = String(port);
  return url.href;
}
