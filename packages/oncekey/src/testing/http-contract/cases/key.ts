/**
 * @module
 * What is a key, where it comes from, and what happens without one.
 */
import assert from "node:assert/strict";
import { assertExecuted, assertRefused, assertReplay, counter, type HttpCase, post } from "../case.js";
import type { HeaderLine, RawRequest } from "../raw-message.js";
import { type ContractRoute, json } from "../route.js";

function orders(options: ContractRoute["protect"] = {}): {
  readonly route: ContractRoute;
  readonly runs: { count: number };
} {
  const runs = counter();
  return {
    runs,
    route: { path: "/orders", protect: options, handle: () => json({ run: ++runs.count }, 201) },
  };
}

function withKeyLines(...values: readonly string[]): RawRequest {
  const lines: HeaderLine[] = values.map((value) => ["Idempotency-Key", value]);
  return post("/orders", undefined, { amount: 10 }, lines);
}

/** Each is the bytes of a field value. RFC 9651 §3.3.3 for what stands in quotation marks. */
const MALFORMED: Readonly<Record<string, string>> = {
  empty: "",
  "an empty String": '""',
  "a String without its end": '"abc',
  "a String without its start": 'abc"',
  "a quotation mark within": 'a"bc',
  "a space within": "a b",
  "a space within a String": '"a b"',
  "a tabulator within": "a\tb",
  "a list": "a, b",
  "a list of Strings": '"a", "b"',
  "something after a String": '"a"b',
  "an escape that does not exist": '"a\\n"',
  "a backslash at the end": '"a\\"',
  "bytes of Latin-1": "caf\u00e9",
  "bytes of UTF-8": "\u00e2\u0098\u0083",
  "256 characters": "k".repeat(256),
  "10 000 characters": "k".repeat(10_000),
};

export const keyCases: readonly HttpCase[] = [
  {
    name: "a request without a key is refused",
    why: "draft-ietf-httpapi-idempotency-key-header-07 §2.7: 400 where the operation requires a key",
    async run(context) {
      const { route, runs } = orders();
      const server = await context.serve(route);
      const response = await server.send(post("/orders", undefined));
      assertRefused(response, "KEY_MISSING");
      assert.equal(runs.count, 0);
      assert.equal(server.calls().length, 0, "the store was asked");
    },
  },
  {
    name: "with onMissingKey run a request without a key is not protected",
    why: "a key can be introduced while old clients still send none",
    async run(context) {
      const { route, runs } = orders({ onMissingKey: "run" });
      const server = await context.serve(route);
      for (const _ of [1, 2]) assertExecuted(await server.send(post("/orders", undefined)), 201);
      assert.equal(runs.count, 2);
      assert.equal(server.calls().length, 0, "the store was asked");
      assertRefused(await server.send(withKeyLines("a b")), "KEY_INVALID");
    },
  },
  {
    name: "a malformed key is refused, and the store is not asked",
    why: "a key that two readers read differently names two effects, or one for two",
    async run(context) {
      const { route, runs } = orders();
      const server = await context.serve(route);
      for (const [what, value] of Object.entries(MALFORMED)) {
        const response = await server.send(withKeyLines(value));
        const problem = assertRefused(response, "KEY_INVALID");
        if (value.length > 3)
          assert.ok(!problem.detail.includes(value), `${what} is repeated to whoever reads the refusal`);
      }
      assert.equal(runs.count, 0);
      assert.equal(server.calls().length, 0, "the store was asked");
    },
  },
  {
    name: "two lines of the key are refused, also if they join into one key",
    why: 'Node joins the lines `"a` and `b"` to `"a, b"`, which is a String of RFC 9651',
    async run(context) {
      const { route, runs } = orders();
      const server = await context.serve(route);
      for (const values of [
        ["a", "b"],
        ["a", "a"],
        ['"a', 'b"'],
        ['"a"', ""],
      ]) {
        assertRefused(await server.send(withKeyLines(...values)), "KEY_INVALID");
      }
      assert.equal(runs.count, 0);
      assert.equal(server.calls().length, 0, "the store was asked");
    },
  },
  {
    name: "a key in quotation marks and its bare characters are one key",
    why: "draft §2.1 asks for a String of RFC 9651; most clients in the field send it bare",
    async run(context) {
      const { route, runs } = orders();
      const server = await context.serve(route);
      const first = await server.send(withKeyLines('"8e03978e-40d5"'));
      assertReplay(first, await server.send(withKeyLines("8e03978e-40d5")));
      assertReplay(first, await server.send(withKeyLines("  8e03978e-40d5\t")));
      const escaped = await server.send(withKeyLines('"a\\"b\\\\c"'));
      assertExecuted(escaped, 201);
      assertReplay(escaped, await server.send(withKeyLines('"a\\"b\\\\c"')));
      assert.equal(runs.count, 2);
    },
  },
  {
    name: "parameters after a quoted key are ignored",
    why: "RFC 9651 §2: unknown parameters are to be ignored",
    async run(context) {
      const { route } = orders();
      const server = await context.serve(route);
      const first = await server.send(withKeyLines('"k1";a=1;b'));
      assertReplay(first, await server.send(withKeyLines('"k1"')));
    },
  },
  {
    name: "a key has 1 to 255 visible characters",
    why: "the bounds belong to the contract with the client",
    async run(context) {
      const visible = Array.from({ length: 94 }, (_, index) => String.fromCharCode(33 + index)).join("");
      const quoted = `"${visible.replaceAll(/["\\]/g, "\\$&")}"`;
      const { route, runs } = orders();
      const server = await context.serve(route);
      for (const value of ["k", "k".repeat(255), quoted]) {
        const first = await server.send(withKeyLines(value));
        assertExecuted(first, 201);
        assertReplay(first, await server.send(withKeyLines(value)));
      }
      assert.equal(runs.count, 3);
    },
  },
  {
    name: "the name of the field is taken in any case",
    why: "RFC 9110 §5.1",
    async run(context) {
      const { route } = orders();
      const server = await context.serve(route);
      const first = await server.send(
        post("/orders", undefined, { amount: 10 }, [["idempotency-key", "k1"]]),
      );
      assertReplay(
        first,
        await server.send(post("/orders", undefined, { amount: 10 }, [["IDEMPOTENCY-KEY", "k1"]])),
      );
    },
  },
  {
    name: "other methods pass through",
    why: "GET, HEAD and OPTIONS are safe (RFC 9110 §9.2.1): to replay them would hide what has changed since",
    async run(context) {
      const runs = counter();
      const server = await context.serve({
        method: "GET",
        path: "/orders",
        parses: "nothing",
        handle: () => json(++runs.count),
      });
      for (const headers of [
        [],
        [["Idempotency-Key", "k1"]],
        [["Idempotency-Key", "not a key"]],
      ] as HeaderLine[][]) {
        assertExecuted(await server.send({ method: "GET", path: "/orders", headers }), 200);
      }
      assert.equal(runs.count, 3);
      assert.equal(server.calls().length, 0, "the store was asked");
    },
  },
  {
    name: "a route beside it that is not protected is left alone",
    why: "protection is chosen route by route",
    async run(context) {
      const codes: unknown[] = [];
      const server = await context.serve([
        orders().route,
        {
          path: "/open",
          protect: false,
          handle({ work }) {
            try {
              work();
            } catch (error) {
              codes.push((error as { readonly code?: unknown }).code);
            }
            return json(1);
          },
        },
      ]);
      const request = post("/open", "not a key");
      for (const _ of [1, 2]) assertExecuted(await server.send(request), 200);
      assert.deepEqual(codes, ["NOT_PROTECTED", "NOT_PROTECTED"]);
      assert.equal(server.calls().length, 0, "the store was asked");
    },
  },
  {
    name: "which methods are protected may be chosen",
    why: "a service may use PUT as RFC 9110 §9.3.4 means it, idempotent by itself",
    async run(context) {
      const runs = counter();
      const handle = () => json(++runs.count);
      const protect = { methods: ["patch"] };
      const server = await context.serve([
        { path: "/orders", method: "PATCH", protect, handle },
        { path: "/orders", method: "PUT", protect, handle },
      ]);
      const patch = { ...post("/orders", "k1"), method: "PATCH" };
      assertReplay(await server.send(patch), await server.send(patch));
      for (const _ of [1, 2]) assertExecuted(await server.send({ ...patch, method: "PUT" }), 200);
      assert.equal(runs.count, 3);
    },
  },
  {
    name: "a key may come from the query or the body",
    why: "webhooks and old clients cannot set a header",
    async run(context) {
      const { route, runs } = orders({
        key: [{ header: "Idempotency-Key" }, { query: "key" }, { body: "/meta/requestId" }],
      });
      const server = await context.serve(route);
      const body = { amount: 10, meta: { requestId: "k-body" } };
      const query = await server.send(post("/orders?key=k-query", undefined));
      assertReplay(query, await server.send(post("/orders?key=k-query", undefined)));
      const inBody = await server.send(post("/orders", undefined, body));
      assertReplay(inBody, await server.send(post("/orders", undefined, body)));
      // The first source that has a key counts.
      assertExecuted(await server.send(post("/orders", "k-header", body)), 201);
      assertRefused(await server.send(post("/orders?key=%20", undefined)), "KEY_INVALID");
      assertRefused(await server.send(post("/orders", undefined)), "KEY_MISSING");
      assert.equal(runs.count, 3);
    },
  },
  {
    name: "neither store nor events see a key or a scope in clear",
    why: "keys and callers end in logs, dumps and support tickets",
    async run(context) {
      const runs = counter();
      const server = await context.serve({
        path: "/orders",
        scope: "caller",
        handle: () => json(++runs.count),
      });
      const request = post("/orders", "secret-key-8e03978e", { amount: 10 }, [["X-Caller", "caller-4711"]]);
      await server.send(request);
      await server.send(request);
      await server.send({ ...request, body: "{}" });
      assert.ok(server.calls("claim").length > 0 && server.events.length > 0);
      for (const seen of [...server.calls(), ...server.events]) {
        const text = JSON.stringify(seen);
        assert.ok(!text.includes("secret-key") && !text.includes("caller-4711"), text);
      }
    },
  },
];
