/**
 * @module
 * The replies of the contract's handlers, made with a web `Response`.
 */
import type { BoundRoute, HeaderLine, Reply } from "oncekey/testing";

/** What no handler can do that returns its answer. */
export const RETURNED: Readonly<Record<string, string>> = {
  "a throw after the answer changes nothing":
    "the answer is what the handler returns, so nothing comes after it",
  "a handler that breaks the connection has failed": "a handler has no connection to break",
};

/** What cannot be said with `Headers`. */
export const JOINED: Readonly<Record<string, string>> = {
  "header lines of one name stay several lines, in order": "the platform joins them, except Set-Cookie",
};

interface Body {
  text(): Promise<string>;
  arrayBuffer(): Promise<ArrayBuffer>;
}

/** What a handler of this route reads of its request. */
export async function bodyOf(route: BoundRoute, request: Body): Promise<unknown> {
  switch (route.parses) {
    case "nothing":
      return undefined;
    case "bytes":
      return Buffer.from(await request.arrayBuffer());
    case "json": {
      const text = await request.text();
      return text === "" ? undefined : JSON.parse(text);
    }
  }
}

export function responseOf(reply: Exclude<Reply, { readonly kind: "throw" }>): Response {
  switch (reply.kind) {
    case "json": {
      const headers = headersOf([["Content-Type", "application/json"], ...reply.headers]);
      return new Response(JSON.stringify(reply.value), { status: reply.status, headers });
    }
    case "bytes":
      return new Response(new Uint8Array(reply.body), {
        status: reply.status,
        headers: headersOf(reply.headers),
      });
    case "empty":
      return new Response(null, { status: reply.status, headers: headersOf(reply.headers) });
    case "redirect":
      return new Response(null, { status: reply.status, headers: { Location: reply.location } });
    case "stream":
      return new Response(ReadableStream.from(reply.chunks()) as never, {
        status: reply.status,
        headers: headersOf(reply.headers),
      });
    default:
      throw new Error(`A handler that returns its answer cannot: ${reply.kind}`);
  }
}

function headersOf(lines: readonly HeaderLine[]): Headers {
  const headers = new Headers();
  for (const [name, value] of lines) headers.append(name, value);
  return headers;
}
