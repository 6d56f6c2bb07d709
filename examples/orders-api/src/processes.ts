/**
 * @module
 * Starts the API and the provider as processes of their own, for `npm start` and for the demo.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

/** A running server process. */
export interface Service {
  readonly url: string;
  /** What it has printed, for when something goes wrong; empty where it prints to the terminal itself. */
  output(): string;
  /** SIGTERM: it may finish what it is doing. */
  stop(): Promise<void>;
  /** SIGKILL: it may not. */
  kill(): Promise<void>;
  /** Settles when it has ended, in whatever way. */
  readonly ended: Promise<unknown>;
}

const SCRIPTS = {
  api: fileURLToPath(new URL("api/server.js", import.meta.url)),
  provider: fileURLToPath(new URL("provider/server.js", import.meta.url)),
} as const;

const MAX_OUTPUT_CHARACTERS = 20_000;

/**
 * Starts a server and waits until it listens.
 *
 * @throws Error with what it printed, if it ends before.
 */
export async function startService(
  which: keyof typeof SCRIPTS,
  env: Readonly<Record<string, string>>,
  { quiet }: { readonly quiet: boolean },
): Promise<Service> {
  const output = quiet ? "pipe" : "inherit";
  const child = fork(SCRIPTS[which], {
    env: { ...process.env, ...env },
    stdio: ["ignore", output, output, "ipc"],
  });
  const printed = collect(child);
  const ended = once(child, "exit");
  const end = async (signal: "SIGTERM" | "SIGKILL"): Promise<void> => {
    child.kill(signal);
    await ended;
  };
  return {
    url: await urlOf(which, child, ended, printed),
    ended,
    output: printed,
    stop: () => end("SIGTERM"),
    kill: () => end("SIGKILL"),
  };
}

async function urlOf(
  which: string,
  child: ChildProcess,
  ended: Promise<unknown>,
  printed: () => string,
): Promise<string> {
  const listening = once(child, "message").then(([message]) => (message as { readonly url: string }).url);
  const tooEarly = ended.then(() => {
    throw new Error(`The ${which} ended before it listened.\n${printed()}`);
  });
  return Promise.race([listening, tooEarly]);
}

function collect({ stdout, stderr }: ChildProcess): () => string {
  let text = "";
  for (const stream of [stdout, stderr]) {
    stream?.on("data", (chunk: Buffer) => {
      text = (text + chunk.toString()).slice(-MAX_OUTPUT_CHARACTERS);
    });
  }
  return () => text;
}
