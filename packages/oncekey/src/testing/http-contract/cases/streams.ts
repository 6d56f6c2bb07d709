/**
 * @module
 * Answers that come in parts, and clients that do not wait for them.
 */
import assert from "node:assert/strict";
import {
  assertReplay,
  counter,
  delay,
  fieldValue,
  gate,
  type HttpCase,
  heldWork,
  isReplay,
  post,
  until,
} from "../case.js";
import type { HttpContractContext } from "../context.js";
import type { HeaderLine } from "../raw-message.js";
import { json, type Reply } from "../route.js";

function stream(chunks: () => AsyncIterable<Uint8Array>, headers: readonly HeaderLine[] = []): Reply {
  return { kind: "stream", status: 200, headers: [["Content-Type", "text/plain"], ...headers], chunks };
}

const FRAMINGS: Readonly<Record<string, readonly HeaderLine[]>> = {
  "without a length": [],
  "with a Content-Length": [["Content-Length", "6"]],
};

async function* threeParts(between: () => Promise<unknown>): AsyncIterable<Uint8Array> {
  yield Buffer.from("ab");
  await between();
  yield Buffer.from("cd");
  yield Buffer.from("ef");
}

/** What a client has when its answer ends is on record: until then the end is held, and nothing else. */
async function endWaitsForCompletion(
  context: HttpContractContext,
  headers: readonly HeaderLine[],
): Promise<void> {
  const landed = gate();
  const server = await context.serve(
    { path: "/orders", handle: () => stream(() => threeParts(() => delay(1)), headers) },
    {
      intercept: {
        async complete(_, next) {
          await landed.opened;
          return next();
        },
      },
    },
  );
  const pending = server.open(post("/orders", "k1"));
  let ended = false;
  pending.response.then(
    () => {
      ended = true;
    },
    () => undefined,
  );
  await pending.firstByteMs;
  await until(() => server.calls("complete").length > 0, "the completion is being stored");
  await delay(100);
  assert.equal(ended, false, "the answer ended before its completion was stored");
  landed.open();
  const first = await pending.response;
  assert.equal(first.body.toString(), "abcdef");
  assertReplay(first, await server.send(post("/orders", "k1")));
}

export const streamCases: readonly HttpCase[] = [
  ...Object.entries(FRAMINGS).flatMap(([framing, headers]): HttpCase[] => [
    {
      name: `the first byte of a stream is not held back, ${framing}`,
      why: "a progress bar, a download, a model that types",
      async run(context) {
        const held = gate();
        const server = await context.serve({
          path: "/orders",
          handle: () => stream(() => threeParts(() => held.opened), headers),
        });
        const pending = server.open(post("/orders", "k1"));
        // Would never come if it were held: the handler goes on only after it.
        await pending.firstByteMs;
        held.open();
        const first = await pending.response;
        assert.equal(first.body.toString(), "abcdef");
        assertReplay(first, await server.send(post("/orders", "k1")));
      },
    },
    {
      name: `an answer ends after its completion is stored, ${framing}`,
      why: "a complete answer that a client has received is the one that it will get again",
      run: (context) => endWaitsForCompletion(context, headers),
    },
    {
      name: `a stream that breaks off has failed, ${framing}`,
      why: "half an answer must not be replayed as a whole one",
      async run(context) {
        const runs = counter();
        const server = await context.serve({
          path: "/orders",
          handle: () => {
            const broken = ++runs.count === 1;
            return stream(
              () =>
                threeParts(async () => {
                  await delay(20);
                  if (broken) throw new Error("The source is gone");
                }),
              headers,
            );
          },
        });
        const first = await server.send(post("/orders", "k1")).catch(() => undefined);
        assert.ok(first === undefined || !first.complete, "a broken answer looks whole");
        const second = await server.send(post("/orders", "k1"));
        assert.equal(second.body.toString(), "abcdef");
        assertReplay(second, await server.send(post("/orders", "k1")));
        assert.equal(runs.count, 2);
      },
    },
  ]),
  {
    name: "an answer of one piece ends after its completion is stored",
    why: "a client that saw success and a store that knows of none is the lost update of retries",
    async run(context) {
      const landed = gate();
      const server = await context.serve(
        { path: "/orders", handle: () => json({ ok: true }, 201) },
        {
          intercept: {
            async complete(_, next) {
              await landed.opened;
              return next();
            },
          },
        },
      );
      let ended = false;
      const pending = server.send(post("/orders", "k1")).then((response) => {
        ended = true;
        return response;
      });
      pending.catch(() => undefined);
      await until(() => server.calls("complete").length > 0, "the completion is being stored");
      await delay(100);
      assert.equal(ended, false, "the answer ended before its completion was stored");
      landed.open();
      assertReplay(await pending, await server.send(post("/orders", "k1")));
    },
  },
  {
    name: "a client that leaves while the work runs finds its result when it comes back",
    why: "phones lose their network in the middle of a payment",
    async run(context) {
      const { runs, open, handle } = heldWork((run) => json({ run }, 201));
      const server = await context.serve({
        path: "/orders",
        protect: { onInFlight: { waitMs: 10_000 } },
        handle,
      });
      const leaver = server.open(post("/orders", "k1"));
      leaver.response.catch(() => undefined);
      await until(() => runs.count === 1, "the first request runs");
      leaver.disconnect();
      const again = server.send(post("/orders", "k1"));
      await delay(50);
      open();
      const response = await again;
      assert.equal(response.status, 201);
      assert.ok(isReplay(response));
      assert.equal(runs.count, 1);
    },
  },
  {
    name: "a stream whose client leaves is drained, and the retry gets all of it",
    why: "a source that is left behind by its pipe never ends, and its key with it",
    async run(context) {
      const left = gate();
      const runs = counter();
      const server = await context.serve({
        path: "/orders",
        protect: { onInFlight: { waitMs: 10_000 } },
        handle: () => {
          runs.count++;
          return stream(() => threeParts(() => left.opened));
        },
      });
      const leaver = server.open(post("/orders", "k1"));
      leaver.response.catch(() => undefined);
      await leaver.firstByteMs;
      leaver.disconnect();
      await delay(100);
      left.open();
      const again = await server.send(post("/orders", "k1"));
      assert.equal(runs.count, 1);
      assert.ok(isReplay(again));
      // A framework that destroys the source leaves a tombstone: done, but its body is gone.
      const retained = fieldValue(again, "idempotency-body") === undefined;
      assert.equal(again.body.toString(), retained ? "abcdef" : "");
    },
  },
];
