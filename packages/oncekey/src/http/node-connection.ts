/**
 * @module
 * What happens to a Node response when its connection goes away, and to the streams that were piped into it.
 *
 * Invariant: a client that leaves does not stop the work. Node takes a source off a closed response and leaves
 * it paused for ever; here it is piped in again, so that it runs to its end. What the bytes are then used for,
 * and how long that may take, is left to `node-response.ts`.
 */
import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Readable } from "node:stream";

/** Whether the peer (or the network, or a server that is shutting down) went away, or this side hung up on it. */
export type GoneBy = "peer" | "us";

/** A socket outlives its requests and may have many at once, so it gets one pair of listeners for all of them. */
interface SocketWatch {
  readonly onClose: Set<() => void>;
  timedOut: boolean;
}
const watches = new WeakMap<Socket, SocketWatch>();

/**
 * Calls `onGone` when the connection of `res` closes, also while `res` still waits for its turn on a pipelined
 * connection, when Node tells it nothing. Returns the way to stop watching.
 */
export function watchConnection(res: ServerResponse, onGone: (by: GoneBy) => void): () => void {
  const { socket } = res.req;
  const watch = watches.get(socket) ?? watchSocket(socket);
  const told = (): void => onGone(hungUp(res, socket, watch) ? "us" : "peer");
  watch.onClose.add(told);
  return () => watch.onClose.delete(told);
}

/** Whether nothing can reach the client any more. */
export function connectionGone(res: ServerResponse): boolean {
  return res.req.socket.destroyed;
}

function watchSocket(socket: Socket): SocketWatch {
  const watch: SocketWatch = { onClose: new Set(), timedOut: false };
  watches.set(socket, watch);
  socket.on("timeout", () => {
    watch.timedOut = true;
  });
  socket.once("close", () => {
    for (const told of watch.onClose) told();
    watch.onClose.clear();
  });
  return watch;
}

/**
 * Frameworks end an answer that failed half way by destroying its socket behind its back (Express's final
 * handler does). It shows by what is missing: an error, an end from the other side, a timeout, a shutdown.
 */
function hungUp(res: ServerResponse, socket: Socket, watch: SocketWatch): boolean {
  const { server } = socket as { readonly server?: { readonly listening: boolean } };
  const hadItsTurn = res.socket === socket;
  const peerEnded = socket.errored !== null || socket.readableEnded || watch.timedOut;
  return hadItsTurn && !peerEnded && server?.listening === true;
}

export interface PipeOwner {
  /** Whether the answer can still grow. */
  open(): boolean;
  /** A source was destroyed before its end, and nobody is left who would end the answer. */
  onAbandoned(): void;
}

export interface Pipes {
  /** Leaves the streams as they are from now on. */
  unfollow(): void;
  /** Takes off all that are piped in. */
  unpipeAll(): void;
}

/** Follows the streams that are piped into `res`. */
export function followPipes(res: ServerResponse, owner: PipeOwner): Pipes {
  const sources = new Set<Readable>();
  const ends = new WeakMap<Readable, boolean>();

  const abandonedIfCut = (source: Readable): void => {
    if (owner.open() && !source.readableEnded) owner.onAbandoned();
  };
  const onPipe = (source: Readable): void => {
    sources.add(source);
    ends.set(source, endsWithSource(source));
    if (connectionGone(res)) source.once("close", () => abandonedIfCut(source));
  };
  const onUnpipe = (source: Readable): void => {
    sources.delete(source);
    if (!connectionGone(res)) return;
    // `pipeline` destroys its source in the same turn, `pipe` does not.
    setImmediate(() => {
      if (source.destroyed) abandonedIfCut(source);
      else if (owner.open()) source.pipe(res, { end: ends.get(source) ?? false });
    });
  };
  res.on("pipe", onPipe);
  res.on("unpipe", onUnpipe);
  return {
    unfollow() {
      res.off("pipe", onPipe);
      res.off("unpipe", onUnpipe);
    },
    unpipeAll() {
      for (const source of sources) source.unpipe(res);
    },
  };
}

/**
 * Whether `pipe` was told to end the response with the source (its default). The listener it has just added
 * to the source is the only trace of that: `onend`, in every version of Node, or else `unpipe`.
 */
function endsWithSource(source: Readable): boolean {
  return source.listeners("end").at(-1)?.name === "onend";
}
