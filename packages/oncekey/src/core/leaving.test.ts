import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { onAbort } from "./leaving.js";

const listeners = (signal: AbortSignal): number => getEventListeners(signal, "abort").length;

describe("waits on one signal", () => {
  it("are one listener, which goes with the last of them", () => {
    const { signal } = new AbortController();
    const stops = Array.from({ length: 50 }, () => onAbort(signal, () => undefined));
    expect(listeners(signal)).toBe(1);
    for (const stop of stops) {
      stop();
      stop();
    }
    expect(listeners(signal)).toBe(0);
    onAbort(signal, () => undefined);
    expect(listeners(signal)).toBe(1);
  });

  it("all hear it, once, except those that stopped", () => {
    const aborter = new AbortController();
    const heard: string[] = [];
    const same = () => void heard.push("same");
    onAbort(aborter.signal, same);
    onAbort(aborter.signal, same);
    const stop = onAbort(aborter.signal, () => heard.push("stopped"));
    onAbort(aborter.signal, () => {
      heard.push("last");
      stop();
    });
    stop();
    aborter.abort();
    expect(heard).toEqual(["same", "same", "last"]);
    expect(listeners(aborter.signal)).toBe(0);
  });
});
