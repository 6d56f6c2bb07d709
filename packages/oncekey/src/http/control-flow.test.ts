import { describe, expect, it } from "vitest";
import { isResponse, nextAnswerOf } from "./control-flow.js";

const thrown = (digest: unknown): Error => Object.assign(new Error("thrown"), { digest });

describe("answers that Next.js throws", () => {
  it.each([
    ["NEXT_REDIRECT;replace;/thanks;307;", 307, "/thanks"],
    ["NEXT_REDIRECT;push;https://shop.example/a?b=c#d;308;", 308, "https://shop.example/a?b=c#d"],
    ["NEXT_REDIRECT;replace;/matrix;v=1;w=2;303;", 303, "/matrix;v=1;w=2"],
  ])("reads a redirect: %s", (digest, status, location) => {
    expect(nextAnswerOf(thrown(digest))).toEqual({
      status,
      headers: [["Location", location]],
      body: new Uint8Array(0),
    });
  });

  it.each([
    ["NEXT_HTTP_ERROR_FALLBACK;404", 404],
    ["NEXT_HTTP_ERROR_FALLBACK;403", 403],
    ["NEXT_NOT_FOUND", 404],
  ])("reads what is not found or not allowed: %s", (digest, status) => {
    expect(nextAnswerOf(thrown(digest))).toEqual({ status, headers: [], body: new Uint8Array(0) });
  });

  it.each([
    ["NEXT_REDIRECT"],
    ["NEXT_REDIRECT;replace;/thanks;soon;"],
    ["NEXT_REDIRECT;replace;/thanks;200;"],
    ["NEXT_HTTP_ERROR_FALLBACK;"],
    ["DYNAMIC_SERVER_USAGE"],
    ["1234567890"],
    [42],
    [undefined],
  ])("takes anything else for an error: %s", (digest) => {
    expect(nextAnswerOf(thrown(digest))).toBeUndefined();
  });

  it.each([[undefined], [null], ["NEXT_NOT_FOUND"], [new Error("plain")]])("does not mind %s", (error) => {
    expect(nextAnswerOf(error)).toBeUndefined();
  });
});

describe("isResponse", () => {
  it("knows a response by its tag, also of another realm or wrapped", () => {
    expect(isResponse(new Response("a"))).toBe(true);
    expect(isResponse(Object.create(Response.prototype))).toBe(true);
    expect(isResponse({ status: 200 })).toBe(false);
    expect(isResponse(undefined)).toBe(false);
  });
});
