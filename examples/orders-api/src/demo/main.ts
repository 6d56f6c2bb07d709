/**
 * @module
 * `npm run demo`: plays every scene over HTTP against real processes, and believes the provider's ledger.
 * The exit code is 0 only if everything was as it should be.
 *
 * `npm run demo -- 1 7a` plays some scenes only. Two flags show that scenes can fail: `--without-oncekey` sends everything
 * to the unprotected route, and with `--sabotage` the provider moves money twice and says nothing of it.
 */
import { parseArgs } from "node:util";
import { killedAfterTransfer, killedAmongOrders, killedBeforeTransfer, killedInCharge } from "./crashes.js";
import { clientLeaves, lostAnswer, withoutOncekey } from "./lost-answers.js";
import { anotherAmount, atOnce, providerFails, twoCustomers } from "./repeats.js";
import type { Ending, Scene } from "./scene.js";
import { createScreen } from "./screen.js";
import { LEASE_MS, openStage, type Stage } from "./stage.js";

const story: readonly Scene[] = [
  withoutOncekey,
  lostAnswer,
  atOnce,
  anotherAmount,
  twoCustomers,
  providerFails,
  clientLeaves,
  killedInCharge,
  killedAfterTransfer,
  killedBeforeTransfer,
  killedAmongOrders,
];

const { values: flags, positionals: numbers } = parseArgs({
  allowPositionals: true,
  options: { "without-oncekey": { type: "boolean" }, sabotage: { type: "boolean" } },
});
const { "without-oncekey": unprotected = false, sabotage = false } = flags;
const scenes = chosen(numbers);
const screen = createScreen(process.stdout);
const startedAt = performance.now();
const stage = await openStage({ unprotected, sabotage });
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => void stage.close().then(() => process.exit(1)));
}

try {
  process.exitCode = (await playAll(stage)) ? 0 : 1;
} finally {
  await stage.close();
}

/** All scenes, or those whose numbers were given. */
function chosen(wanted: readonly string[]): readonly Scene[] {
  const known = story.map(({ number }) => number);
  const unknown = wanted.filter((number) => !known.includes(number));
  if (unknown.length > 0) {
    console.error(`There is no scene ${unknown.join(", ")}. There are ${known.join(", ")}.`);
    process.exit(1);
  }
  return wanted.length === 0 ? story : story.filter(({ number }) => wanted.includes(number));
}

async function playAll(on: Stage): Promise<boolean> {
  screen.say(`The API listens on ${on.apiUrl}, the payment provider is another process.`);
  screen.say(
    "Killed means SIGKILL: the process is gone, a new one starts, and the client sends its key again.",
  );
  screen.say(`A crash keeps a key until its lease ends: ${LEASE_MS / 1_000} s here, 30 s unless set.\n`);
  screen.head();
  let failed = 0;
  for (const scene of scenes) {
    screen.playing(scene);
    const ending = await playOne(scene, on);
    screen.line(scene, ending);
    if (ending.wrong.length > 0) failed += 1;
  }
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1);
  screen.say("");
  if (failed === 0) {
    screen.good(`Every count is right: ${shownCount(scenes.length)} in ${seconds} s.`);
    return true;
  }
  if (!unprotected && !sabotage) screen.say(`What the API printed:\n${on.output()}`);
  screen.bad(`${failed} of ${shownCount(scenes.length)} went wrong, in ${seconds} s.`);
  return false;
}

function shownCount(count: number): string {
  return count === 1 ? "1 scene" : `${count} scenes`;
}

async function playOne(scene: Scene, on: Stage): Promise<Ending> {
  try {
    return await scene.play(on);
  } catch (error) {
    const wrong = [error instanceof Error ? error.message : String(error)];
    return { clientSaw: "", providerCounted: "", verdict: "not played", wrong };
  }
}
