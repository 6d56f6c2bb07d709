import { Readable } from "node:stream";
import Fastify, {
  type FastifyInstance,
  type FastifyPluginAsync,
  type FastifyReply,
  type FastifyRequest,
} from "fastify";
import { idempotent } from "oncekey/http/fastify";
import { type BoundRoute, bindHttpContract, type ContractApp, type Reply } from "oncekey/testing";
import { describe, it } from "vitest";
import { contractStores } from "../support/contract-stores.js";

/** What is known of a body that a parser has consumed is what the parser made of it. */
const PARSED: Readonly<Record<string, string>> = {
  "whole numbers beyond a double are told apart": "the parser has made doubles of them",
  "a chunked request that turns out too large is refused": "the parser has read it within its own limit",
};

describe.each([["after the plugin"], ["before the plugin has loaded"]])(
  "httpContract: Fastify, routes declared %s",
  (when) => {
    bindHttpContract(
      { describe, it },
      {
        ...contractStores,
        async listen(app) {
          const fastify = await serve(app, when === "after the plugin");
          await fastify.listen({ host: "127.0.0.1", port: 0 });
          const { port } = fastify.addresses()[0] as { readonly port: number };
          return { port, close: () => fastify.close() };
        },
        waivers: PARSED,
      },
    );
  },
);

async function serve(
  { idempotency, routes, outerHeaders }: ContractApp,
  loaded: boolean,
): Promise<FastifyInstance> {
  const fastify = Fastify({ bodyLimit: 10 * 1024 * 1024, forceCloseConnections: true });
  fastify.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) => done(null, body));
  fastify.addHook("onRequest", (_request, reply, done) => {
    for (const [name, value] of outerHeaders()) add(reply, name, value);
    done();
  });
  for (const route of routes) {
    const plugin = idempotent(
      idempotency,
      route.options<FastifyRequest>((request, name) => request.headers[name]?.toString()),
    );
    const scoped: FastifyPluginAsync = async (scope) => {
      if (route.parses !== "json") scope.removeContentTypeParser(["application/json", "text/plain"]);
      const loading = scope.register(plugin);
      if (loaded) await loading;
      scope.route({
        method: route.method,
        url: route.path,
        config: { idempotency: route.protected },
        handler: handlerOf(route, (request) => idempotency.workOf(request)),
      });
    };
    await fastify.register(scoped, { prefix: route.mount });
  }
  return fastify;
}

function handlerOf(
  route: BoundRoute,
  workOf: (request: FastifyRequest) => ReturnType<ContractApp["idempotency"]["workOf"]>,
) {
  return (request: FastifyRequest, reply: FastifyReply) => {
    const body = route.parses === "nothing" ? undefined : request.body;
    const answer = route.handle({ body, work: () => workOf(request) });
    if (!(answer instanceof Promise)) return send(reply, answer);
    return answer.then((late) => send(reply, late));
  };
}

function add(reply: FastifyReply, name: string, value: string): void {
  // Fastify adds to this one by itself.
  const before = name.toLowerCase() === "set-cookie" ? undefined : reply.getHeader(name);
  reply.header(name, before === undefined ? value : [before, value].flat());
}

function send(reply: FastifyReply, answer: Reply): unknown {
  if ("headers" in answer) for (const [name, value] of answer.headers) add(reply, name, value);
  if ("status" in answer && answer.status !== undefined) reply.code(answer.status);
  switch (answer.kind) {
    case "json":
      return reply.type("application/json").send(JSON.stringify(answer.value));
    case "bytes":
      return reply.send(Buffer.from(answer.body));
    case "empty":
      return reply.send();
    case "redirect":
      return reply.redirect(answer.location, answer.status);
    case "stream":
      return reply.send(Readable.from(answer.chunks()));
    case "throw":
      throw Object.assign(new Error(answer.message), { statusCode: answer.status });
    case "end-then-throw":
      reply.send(answer.value);
      throw new Error("Thrown after the answer");
    case "destroy":
      reply.raw.destroy();
      return reply;
  }
}
