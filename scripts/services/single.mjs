/**
 * @module scripts/services/single
 *
 * One server of one kind: a host that runs it, and the wait until it answers.
 */
import { containerHost } from "./container.mjs";
import { kinds } from "./kinds.mjs";
import { localHost } from "./local.mjs";
import { freePort } from "./ports.mjs";
import { findPrograms } from "./programs.mjs";
import { until } from "./wire.mjs";

const startTimeoutMs = 60_000;

/**
 * @typedef {object} Server
 * @property {string} url
 * @property {number} port
 * @property {() => Promise<void>} start starts it again, on the same port and with the data that its last end left
 * @property {(signal?: NodeJS.Signals) => Promise<void>} stop in good order, or by a signal (`"SIGKILL"` is a crash)
 * @property {() => Promise<void>} restart
 * @property {() => Promise<void>} pause it stands still, as with SIGSTOP: connections stay, nothing is answered
 * @property {() => Promise<void>} resume
 * @property {() => Promise<void>} close ends it for good and removes its data; a process that ends does so for all its servers
 *
 * @typedef {object} ServerOptions
 * @property {import("./kinds.mjs").Settings} [settings] of the server's own configuration, over those that tests get
 * @property {boolean} [onHostNetwork] where it runs in a container, it shares the host's network
 */

/**
 * @param {keyof typeof kinds} name
 * @param {ServerOptions} [options]
 * @returns {Promise<Server>}
 */
export async function startSingle(name, { settings = {}, onHostNetwork = false } = {}) {
  const kind = kinds[name];
  const found = await findPrograms(kind.needs);
  const port = await freePort();
  /** @type {number[]} */
  const more = [];
  while (more.length < (kind.morePorts ?? 0)) more.push(await freePort());
  const options = { name, port, more, settings: { ...kind.settings, ...settings } };
  const host =
    found.kind === "local"
      ? await localHost(kind, { ...options, programs: found.programs })
      : await containerHost(kind, { ...options, image: found.image, onHostNetwork });

  const start = async () => {
    await host.start();
    await until(() => kind.isReady(port), { timeoutMs: startTimeoutMs, what: name, isHopeless: host.ended });
  };
  const stop = (/** @type {NodeJS.Signals} */ signal = kind.gracefully) => host.stop(signal);
  const close = async () => {
    await host.resume().catch(() => {});
    await host.stop(kind.lastly);
    await host.remove();
  };
  try {
    await start();
  } catch (error) {
    await close();
    throw error;
  }
  return {
    url: kind.url(port),
    port,
    start,
    stop,
    restart: async () => {
      await stop();
      await start();
    },
    pause: host.pause,
    resume: host.resume,
    close,
  };
}
