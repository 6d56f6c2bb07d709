import { describe, expect, it } from "vitest";
import { CODES, type ErrorCode, OncekeyError } from "../core/errors.js";
import { type ProblemOptions, problemOptionProblems, renderProblem } from "./problem.js";

function render(error: OncekeyError, options: ProblemOptions = {}) {
  const { status, headers, body } = renderProblem(error, options);
  return {
    status,
    headers: new Headers(headers.map(([name, value]) => [name, value])),
    body: JSON.parse(new TextDecoder().decode(body)),
  };
}

const inFlight = new OncekeyError("IN_FLIGHT", "Wait.", { retryAfterMs: 1_001 });
const missing = new OncekeyError("KEY_MISSING", "Send a key.");

describe("renderProblem", () => {
  it("writes the members of RFC 9457 and ours", () => {
    const { status, headers, body } = render(inFlight);
    expect(status).toBe(409);
    expect(body).toEqual({
      type: "https://oncekey.dev/errors/in-flight",
      title: "Operation is still in flight",
      status: 409,
      detail: "Wait.",
      code: "IN_FLIGHT",
      businessCode: 40911,
      retryable: true,
    });
    expect(headers.get("content-type")).toBe("application/problem+json");
    expect(headers.get("cache-control")).toBe("no-store");
  });

  it.each(Object.keys(CODES) as ErrorCode[])("renders %s by its facts", (code) => {
    const { status, headers, body } = render(new OncekeyError(code, "What happened."));
    const { status: expected, businessCode, retryable } = CODES[code];
    expect([status, body.status, body.businessCode, body.retryable]).toEqual([
      expected,
      expected,
      businessCode,
      retryable,
    ]);
    expect(headers.has("retry-after")).toBe(retryable);
    expect(headers.has("www-authenticate")).toBe(expected === 401);
    expect(headers.get("link")).toBe(`<${body.type}>; rel="describedby"; type="text/html"`);
  });

  it.each([
    [undefined, "1"],
    [0, "1"],
    [999, "1"],
    [1_000, "1"],
    [1_001, "2"],
    [5_000, "5"],
  ])("asks to wait whole seconds, rounded up: %s ms", (retryAfterMs, seconds) => {
    const { headers } = render(new OncekeyError("IN_FLIGHT", "Wait.", { retryAfterMs }));
    expect(headers.get("retry-after")).toBe(seconds);
  });

  it("says that the work is done where it is", () => {
    const error = new OncekeyError("RESULT_NOT_RETAINED", "Done.", { completed: true });
    expect(render(error).body.completed).toBe(true);
    expect(render(missing).body).not.toHaveProperty("completed");
  });

  it("takes the service's own texts, in any language, and leaves the rest", () => {
    const messages = { IN_FLIGHT: "请勿重复提交", KEY_MISSING: { title: "Schlüssel fehlt" } };
    expect(render(inFlight, { messages }).body).toMatchObject({
      title: "Operation is still in flight",
      detail: "请勿重复提交",
      code: "IN_FLIGHT",
    });
    expect(render(missing, { messages }).body).toMatchObject({
      title: "Schlüssel fehlt",
      detail: "Send a key.",
    });
    expect(render(missing, { messages: { KEY_MISSING: undefined } }).body.detail).toBe("Send a key.");
  });

  it("links to the service's own documentation and takes its challenge", () => {
    const options = { docs: "https://api.shop.test/idempotency", challenge: 'Basic realm="shop"' };
    const { headers } = render(new OncekeyError("SCOPE_MISSING", "Log in."), options);
    expect(headers.get("link")).toBe(
      '<https://api.shop.test/idempotency>; rel="describedby"; type="text/html"',
    );
    expect(headers.get("www-authenticate")).toBe('Basic realm="shop"');
  });

  it("renders a code of a later version that it does not know", () => {
    const later = Object.assign(new OncekeyError("IN_FLIGHT", "Later."), {
      code: "LATER_CODE" as "IN_FLIGHT",
    });
    expect(render(later).body).toMatchObject({ code: "LATER_CODE", title: "LATER_CODE", status: 409 });
  });
});

describe("problemOptionProblems", () => {
  it("has none with sound options", () => {
    const messages = { IN_FLIGHT: "Wait." };
    expect(problemOptionProblems({})).toEqual([]);
    expect(problemOptionProblems({ messages, docs: "/docs#keys", challenge: 'Bearer realm="a b"' })).toEqual(
      [],
    );
  });

  it("lists everything that is wrong at once", () => {
    const messages = { IN_FLIHGT: "Wait." };
    const problems = problemOptionProblems({
      messages,
      docs: "https://a>b",
      challenge: "Bearer\r\nX: y",
    } as ProblemOptions);
    expect(problems.map((problem) => problem.split(" ")[0])).toEqual(["messages", "docs", "challenge"]);
  });
});
