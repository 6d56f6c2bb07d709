/**
 * @module
 * Puts the hooks of a protection on Fastify's routes.
 *
 * Invariant: a route is protected once, by the innermost registration of the plugin that it is declared in. A route
 * whose methods are not protected gets no hooks.
 */
import type { FastifyReply, FastifyRequest, RouteHandlerMethod, RouteOptions } from "fastify";
import { type FindProtection, type Protection, protectionHooks } from "./fastify-exchange.js";
import { connectionGone } from "./node-connection.js";
import type { HttpOptions } from "./options.js";

const DECLARED = Symbol("oncekey.declared");

/** What a registration makes of a route's setting. */
export type ProtectionOf = (
  setting: boolean | HttpOptions<FastifyRequest> | undefined,
  url: string | undefined,
) => Protection | undefined;

/** On the configuration of a route that was declared after a plugin had loaded. */
interface Declared {
  protection: Protection | undefined;
  hooked: boolean;
}

interface RouteConfig {
  readonly [DECLARED]?: Declared;
}

/** Protects `route`, in place of what a registration further out has said about it. */
export function protectRoute(route: RouteOptions, protection: Protection | undefined): void {
  const declared = (route.config as RouteConfig | undefined)?.[DECLARED] ?? declare(route);
  const needed = [route.method].flat().some((method) => protection?.exchange.protects(method) === true);
  declared.protection = needed ? protection : undefined;
  if (needed && !declared.hooked) addHooks(route, () => declared.protection);
  declared.hooked ||= needed;
}

function declare(route: RouteOptions): Declared {
  const declared: Declared = { protection: undefined, hooked: false };
  route.config = Object.assign({}, route.config, { [DECLARED]: declared });
  return declared;
}

/** Authentication comes before the claim; nothing comes between the handler and what is captured. */
function addHooks(route: RouteOptions, find: FindProtection): void {
  const hooks = protectionHooks(find);
  route.preParsing = [hooks.preParsing, ...listOf(route.preParsing)];
  route.preValidation = [hooks.preValidation, ...listOf(route.preValidation)];
  route.preHandler = [...listOf(route.preHandler), hooks.preHandler];
  route.onSend = [hooks.onSend, ...listOf(route.onSend)];
  route.onError = [hooks.onError, ...listOf(route.onError)];
  route.handler = answering(route.handler);
}

function listOf<T>(hooks: T | T[] | undefined): T[] {
  if (hooks === undefined) return [];
  return Array.isArray(hooks) ? hooks : [hooks];
}

/** Fastify sends nothing for a handler that returns nothing if its client has left. It is an answer all the same. */
function answering(handler: RouteHandlerMethod): RouteHandlerMethod {
  return function (request, reply) {
    const result: unknown = handler.call(this, request, reply);
    return result instanceof Promise ? result.then((value) => answerAnyway(value, reply)) : result;
  };
}

function answerAnyway(value: unknown, reply: FastifyReply): unknown {
  if (value !== undefined || reply.sent || !connectionGone(reply.raw)) return value;
  return reply.send();
}

/** Finds the protection of a route that was declared before the plugin had loaded, once somebody asks for it. */
export function earlierRoutes(protectionOf: ProtectionOf): FindProtection {
  const protections = new WeakMap<object, { readonly protection: Protection | undefined }>();
  return (request) => {
    if (request.is404) return undefined;
    const { config, url } = request.routeOptions;
    if (DECLARED in config) return undefined;
    let found = protections.get(config);
    if (found === undefined) {
      found = { protection: protectionOf(config.idempotency, url) };
      protections.set(config, found);
    }
    return found.protection;
  };
}
