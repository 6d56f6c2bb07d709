import { describe, expect, it } from "vitest";
import type { RedisNode, RedisReply } from "./driver.js";
import { inspect } from "./server.js";

const node = (send: RedisNode["send"]): RedisNode => ({ address: "here", send });
const failing = (message: string) => node(() => Promise.reject(new Error(message)));

describe("who has answered", () => {
  it.each([
    "Stream isn't writeable and enableOfflineQueue options is false",
    "Connection is closed.",
    "Socket closed unexpectedly",
    "The client is closed",
    "connect ECONNREFUSED 127.0.0.1:6380",
    "LOADING Redis is loading the dataset in memory",
    "MASTERDOWN Link with MASTER is down",
  ])("not whoever said: %s", async (message) => {
    expect(await inspect(failing(message))).toMatchObject({ answered: false, runId: undefined });
  });

  it.each([
    "NOPERM this user has no permissions to run the 'info' command",
    "ERR unknown command 'INFO', with args beginning with: ",
    "NOAUTH Authentication required.",
  ])("one that may not be asked: %s", async (message) => {
    expect(await inspect(failing(message))).toMatchObject({ answered: true, runId: undefined });
  });

  it("one that says who it is, whatever it may not be asked beside", async () => {
    const info = Buffer.from("redis_version:7.0.15\r\nrun_id:abc\r\nrole:master\r\n");
    const told = node(async ([name]): Promise<RedisReply> => {
      if (name === "INFO") return info;
      throw new Error("NOPERM this user has no permissions to run the 'config|get' command");
    });
    expect(await inspect(told)).toMatchObject({ answered: true, runId: "abc", fsync: undefined });
  });
});
