/**
 * @module
 * What a server under contract has to serve, said without a framework: routes, what their handlers get, and
 * what they answer. A binding says it again in its framework's own words.
 */
import type { ErrorCode } from "../../core/errors.js";
import type { Policy } from "../../core/policy.js";
import type { Work } from "../../core/work.js";
import type { HeaderLine } from "./raw-message.js";

/** What a handler does in the end. Several lines of one name are several lines of the answer. */
export type Reply =
  /** `value` as the framework writes JSON. */
  | {
      readonly kind: "json";
      readonly status: number;
      readonly headers: readonly HeaderLine[];
      readonly value: unknown;
    }
  | {
      readonly kind: "bytes";
      readonly status: number;
      readonly headers: readonly HeaderLine[];
      readonly body: Uint8Array;
    }
  /** No body at all; also 204. */
  | { readonly kind: "empty"; readonly status: number; readonly headers: readonly HeaderLine[] }
  | { readonly kind: "redirect"; readonly status: 303; readonly location: string }
  /** Each chunk as it comes. With a `Content-Length` among the headers, or chunked. It may throw in the middle. */
  | {
      readonly kind: "stream";
      readonly status: number;
      readonly headers: readonly HeaderLine[];
      readonly chunks: () => AsyncIterable<Uint8Array>;
    }
  /**
   * The handler throws instead of answering: where the framework has errors with a status, one of that, else
   * an `Error`. Whether it throws or rejects is told by `handle` returning a reply or a promise of one.
   */
  | { readonly kind: "throw"; readonly status: number | undefined; readonly message: string }
  /** Answers whole, as `json` does, and throws then. A framework whose handlers return their answer waives it. */
  | { readonly kind: "end-then-throw"; readonly status: number; readonly value: unknown }
  /** Breaks the connection without an answer. */
  | { readonly kind: "destroy" };

/** What the handler gets from the framework's usual parser: a JSON value, bytes, or nothing. */
export type Parses = "json" | "bytes" | "nothing";

export interface HandlerRequest {
  readonly body: unknown;
  /** `workOf` the framework's carrier, called when it is needed. */
  readonly work: () => Work;
}

/** A refusal as its renderer gets it, and the answer that it makes. */
type RenderRefusal = (problem: {
  readonly code: ErrorCode;
  readonly detail: string;
  readonly status: number;
}) => {
  readonly status: number;
  readonly headers: readonly HeaderLine[];
  readonly body: Uint8Array;
};

/** Options of protection as far as no framework's types are in them. What they mean is said at `HttpOptions`. */
export interface CommonOptions extends Policy {
  readonly operation?: string | undefined;
  readonly methods?: readonly string[] | undefined;
  readonly key?:
    | readonly ({ readonly header: string } | { readonly query: string } | { readonly body: string })[]
    | undefined;
  readonly onMissingKey?: "reject" | "run" | undefined;
  readonly onMissingScope?: "reject" | "run" | "global" | undefined;
  readonly fingerprint?: "request" | "off" | { readonly fields: readonly string[] } | undefined;
  readonly maxRequestBytes?: number | undefined;
  readonly maxWaitMs?: number | undefined;
  readonly onRequestTooLarge?: "refuse" | "skip-body" | undefined;
  readonly onTombstone?: "status" | "refuse" | undefined;
  readonly messages?:
    | { readonly [Code in ErrorCode]?: string | { readonly title?: string; readonly detail?: string } }
    | undefined;
  readonly docs?: string | undefined;
  readonly challenge?: string | undefined;
  readonly renderRefusal?: RenderRefusal | undefined;
}

/** Where the scope comes from: nobody's in particular, the request's `X-Caller`, or a function that throws. */
type ScopeSource = "global" | "caller" | "throws";

export interface ContractRoute {
  /** @defaultValue POST */
  readonly method?: string | undefined;
  /** Starts with a slash; `:name` is a parameter. */
  readonly path: string;
  /** A prefix under which the framework mounts a group of routes, if it has such a thing. */
  readonly mount?: string | undefined;
  /** @defaultValue `"json"` */
  readonly parses?: Parses | undefined;
  /** @defaultValue `"global"` */
  readonly scope?: ScopeSource | undefined;
  /** `false`: the route is not protected at all. */
  readonly protect?: CommonOptions | false | undefined;
  handle(request: HandlerRequest): Reply | Promise<Reply>;
}

/** How a binding reads a header line of a request: from whatever its framework's scope function is given. */
export type ReadHeader<Carrier> = (carrier: Carrier, name: string) => string | undefined;

/** A route with everything filled in, as a binding gets it. */
export interface BoundRoute {
  readonly method: string;
  readonly path: string;
  readonly mount: string;
  readonly parses: Parses;
  readonly protected: boolean;
  /** What to give to the adapter under test. */
  options<Carrier>(header: ReadHeader<Carrier>): BoundOptions<Carrier>;
  handle(request: HandlerRequest): Reply | Promise<Reply>;
}

interface BoundOptions<Carrier> extends CommonOptions {
  readonly scope: "global" | ((carrier: Carrier) => string | undefined);
}

export function boundRoute(route: ContractRoute): BoundRoute {
  const { method = "POST", mount = "", parses = "json", scope = "global", protect = {} } = route;
  return {
    method,
    path: route.path,
    mount,
    parses,
    protected: protect !== false,
    options: (header) => ({ ...(protect === false ? {} : protect), scope: scopeOf(scope, header) }),
    handle: (request) => route.handle(request),
  };
}

function scopeOf<Carrier>(source: ScopeSource, header: ReadHeader<Carrier>): BoundOptions<Carrier>["scope"] {
  switch (source) {
    case "global":
      return "global";
    case "caller":
      return (carrier) => header(carrier, "x-caller");
    case "throws":
      return () => {
        throw new Error("Nobody can be told from anybody");
      };
  }
}

export function json(value: unknown, status = 200, headers: readonly HeaderLine[] = []): Reply {
  return { kind: "json", status, headers, value };
}

export function bytes(body: Uint8Array, headers: readonly HeaderLine[] = []): Reply {
  return {
    kind: "bytes",
    status: 200,
    headers: [["Content-Type", "application/octet-stream"], ...headers],
    body,
  };
}

export function failure(status: number | undefined, message = "The provider said no"): Reply {
  return { kind: "throw", status, message };
}
