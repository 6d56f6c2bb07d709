import { Readable } from "node:stream";
import { describe, expect, it } from "vitest";
import { manualClock } from "../../src/testing/manual-clock.js";
import { bodyOf, hangUp, serveCaptured, settle, start, vacant } from "./captured-server.js";
import { post } from "./raw-http.js";

describe("after the client has left an answer that is held whole", () => {
  it("its end still counts", async () => {
    let end = (): void => {};
    const { server, client } = await start(
      (_req, res) => {
        res.write("half, ");
        end = () => res.end("whole");
      },
      { hold: "everything" },
    );
    client.send(post("/"));
    const capture = await server.capture();
    await hangUp(client, server);
    end();
    expect(bodyOf(await capture.ended)).toBe("half, whole");
  });

  it("an answer without an end is none", async () => {
    const clock = manualClock();
    const { server, client } = await start((_req, res) => void res.write("half"), {
      hold: "everything",
      clock,
    });
    client.send(post("/"));
    const capture = await server.capture();
    await hangUp(client, server);
    await clock.advance(30_000);
    expect(await capture.ended).toEqual({ kind: "aborted", status: 200 });
  });
});

describe("a connection that goes away for another reason", () => {
  it.each(["shutdown", "timeout"])("does not abort the work: %s", async (reason) => {
    let end = (): void => {};
    const server = await serveCaptured((capture) => (_req, res) => {
      capture(res);
      res.write("half, ");
      end = () => res.end("whole");
    });
    if (reason === "timeout") server.server.setTimeout(20);
    const client = await server.connect();
    client.send(post("/"));
    const capture = await server.capture();
    if (reason === "shutdown") {
      server.server.close();
      server.server.closeAllConnections();
    }
    await vacant(server);
    end();
    expect(bodyOf(await capture.ended)).toBe("half, whole");
  });

  it("does not abort what waits behind it on a pipelined connection", async () => {
    let end = (): void => {};
    const { server, client } = await start((req, res) => {
      if (req.url === "/first") res.destroy();
      else end = () => res.end("whole");
    });
    client.send(post("/first") + post("/second"));
    const [first, second] = [await server.capture(), await server.capture()];
    expect(await first.ended).toEqual({ kind: "aborted", status: undefined });
    await vacant(server);
    end();
    expect(bodyOf(await second.ended)).toBe("whole");
  });

  it("a response that waits for its turn on a pipelined connection is drained too", async () => {
    const { server, client } = await start(
      (req, res) => {
        if (req.url === "/second") Readable.from(Array(400).fill("x".repeat(16 * 1024))).pipe(res);
      },
      { maxResultBytes: 400 * 16 * 1024 },
    );
    client.send(post("/first") + post("/second"));
    await server.capture();
    const second = await server.capture();
    await settle();
    await hangUp(client, server);
    expect(bodyOf(await second.ended)).toHaveLength(400 * 16 * 1024);
  });

  it("a response that waits for its turn on a pipelined connection may still be made", async () => {
    let end = (): void => {};
    const { server, client } = await start((req, res) => {
      if (req.url === "/second") end = () => res.end("made");
    });
    client.send(post("/first") + post("/second"));
    await server.capture();
    const second = await server.capture();
    await hangUp(client, server);
    end();
    expect(bodyOf(await second.ended)).toBe("made");
  });

  it("many responses of one pipelined connection do not warn of a leak", async () => {
    const warnings: Error[] = [];
    const onWarning = (warning: Error): void => void warnings.push(warning);
    process.on("warning", onWarning);
    const { server, client } = await start(() => {});
    client.send(post("/").repeat(30));
    const captures = [];
    for (let request = 0; request < 30; request++) captures.push(await server.capture());
    await hangUp(client, server);
    await settle();
    process.off("warning", onWarning);
    expect(warnings).toEqual([]);
    expect(captures).toHaveLength(30);
  });
});
