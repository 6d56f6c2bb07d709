/**
 * @module
 * Whose key it is: two callers never meet, on any path.
 */
import assert from "node:assert/strict";
import {
  assertExecuted,
  assertRefused,
  assertReplay,
  counter,
  fieldValue,
  type HttpCase,
  heldWork,
  isReplay,
  post,
  until,
} from "../case.js";
import type { RawRequest } from "../raw-message.js";
import { type ContractRoute, json } from "../route.js";

function by(caller: string | undefined, key = "k1"): RawRequest {
  return post("/orders", key, { amount: 10 }, caller === undefined ? [] : [["X-Caller", caller]]);
}

function orders(
  protect: ContractRoute["protect"] = {},
  scope: ContractRoute["scope"] = "caller",
): [ContractRoute, { count: number }] {
  const runs = counter();
  return [{ path: "/orders", scope, protect, handle: () => json({ run: ++runs.count }, 201) }, runs];
}

export const scopeCases: readonly HttpCase[] = [
  {
    name: "two callers with one key both run, and see their own answers",
    why: "a guessed or shared key must not show anybody else's order",
    async run(context) {
      const [route, runs] = orders();
      const server = await context.serve(route);
      const ada = await server.send(by("ada"));
      const bob = await server.send(by("bob"));
      assert.ok(!ada.body.equals(bob.body));
      assertReplay(ada, await server.send(by("ada")));
      assertReplay(bob, await server.send(by("bob")));
      assert.equal(runs.count, 2);
    },
  },
  {
    name: "two callers with one key at once both run",
    why: "joining and waiting must respect the scope as replaying does",
    async run(context) {
      const { runs, open, handle } = heldWork((run) => json({ run }));
      const server = await context.serve({
        path: "/orders",
        scope: "caller",
        handle,
      });
      const both = [server.send(by("ada")), server.send(by("bob"))];
      await until(() => runs.count === 2, "both run");
      open();
      const [ada, bob] = await Promise.all(both);
      assert.ok(ada !== undefined && bob !== undefined && !isReplay(ada) && !isReplay(bob));
      assert.ok(!ada.body.equals(bob.body));
      assert.equal(server.calls("complete").length, 2);
    },
  },
  {
    name: "scopes and keys that read alike together do not meet",
    why: "`a:b` with key `c` and `a` with key `b:c`",
    async run(context) {
      const [route, runs] = orders();
      const server = await context.serve(route);
      const pairs = [
        ["a:b", "c"],
        ["a", "b:c"],
        ["a|b", "c"],
        ["a", "b|c"],
        ["global", "c"],
        ["ab", "c"],
        ["a", "bc"],
      ] as const;
      for (const [caller, key] of pairs) {
        const first = await server.send(by(caller, key));
        assertReplay(first, await server.send(by(caller, key)));
      }
      assert.equal(runs.count, pairs.length);
    },
  },
  {
    name: "a caller whose id is global is not everybody",
    why: "the opt-out is not a name that somebody can have",
    async run(context) {
      const [route, runs] = orders({ onMissingScope: "global" });
      const server = await context.serve(route);
      const nobody = await server.send(by(undefined));
      assertReplay(nobody, await server.send(by(undefined)));
      assertExecuted(await server.send(by("global")), 201);
      assert.equal(runs.count, 2);
    },
  },
  {
    name: "a request without a caller is refused, with a challenge",
    why: "RFC 9110 §15.5.2: a 401 has to carry WWW-Authenticate",
    async run(context) {
      const [route, runs] = orders();
      const server = await context.serve(route);
      const response = await server.send(by(undefined));
      assertRefused(response, "SCOPE_MISSING");
      assert.match(fieldValue(response, "www-authenticate") ?? "", /^\w+/);
      assert.equal(runs.count, 0);
      assert.equal(server.calls().length, 0, "the store was asked");
    },
  },
  {
    name: "with onMissingScope run a request without a caller is not protected",
    why: "a public form may be sent by anybody, but by two strangers with one key as two",
    async run(context) {
      const [route, runs] = orders({ onMissingScope: "run" });
      const server = await context.serve(route);
      for (const _ of [1, 2]) assertExecuted(await server.send(by(undefined)), 201);
      assert.equal(runs.count, 2);
      assert.equal(server.calls().length, 0, "the store was asked");
      assertReplay(await server.send(by("ada")), await server.send(by("ada")));
    },
  },
  {
    name: "a scope function that throws is an error of the server, and nothing runs",
    why: "not to know the caller is no reason to share a key with everybody",
    async run(context) {
      const [route, runs] = orders({}, "throws");
      const server = await context.serve(route);
      const response = await server.send(by("ada"));
      assertRefused(response, "SCOPE_FAILED");
      assert.ok(!response.body.includes("told from anybody"), "the message of the thrown error leaks");
      assert.equal(runs.count, 0);
    },
  },
];
