import { afterEach, describe, expect, it } from "vitest";
import { notPerformed } from "../core/errors.js";
import { createIdempotency } from "../core/idempotency.js";
import { memoryStore } from "../stores/memory/index.js";
import { idempotent } from "./fetch.js";

const store = memoryStore();
const idempotency = createIdempotency({ store, scope: "global" });
let count = 0;
afterEach(() => {
  count = 0;
});

let keys = 0;
function order(body: BodyOf = '{"amount":10}', given: RequestInit = {}): () => Request {
  keys += 1;
  const key = `order-${keys}`;
  return () =>
    new Request("http://shop.example/orders?from=web", {
      method: "POST",
      body,
      ...given,
      headers: { "Idempotency-Key": key, "Content-Type": "application/json", ...given.headers },
    });
}

type BodyOf = NonNullable<ConstructorParameters<typeof Request>[1]>["body"] & (string | FormData | undefined);

const isReplay = (response: Response): boolean => response.headers.get("idempotency-replayed") === "true";

describe("the handler's request", () => {
  it("is the same object, unread", async () => {
    let seen: Request | undefined;
    const POST = idempotent(idempotency, {}, async (request) => {
      seen = request;
      return Response.json(await request.json());
    });
    const request = order()();
    const response = await POST(request);
    expect(seen).toBe(request);
    expect(await response.json()).toEqual({ amount: 10 });
  });

  it("can be read by any of its methods", async () => {
    for (const read of ["json", "text", "arrayBuffer", "blob"] as const) {
      const POST = idempotent(
        idempotency,
        {},
        async (request) => new Response(String(await request[read]())),
      );
      expect((await POST(order()())).status).toBe(200);
    }
    const POST = idempotent(idempotency, {}, async (request) => new Response(await request.clone().text()));
    expect(await (await POST(order("text")())).text()).toBe("text");
  });

  it("has the signal of the claim, not that of the connection", async () => {
    const client = new AbortController();
    const POST = idempotent(idempotency, {}, async (request) => {
      client.abort();
      return Response.json({
        aborted: request.signal.aborted,
        same: request.signal === idempotency.workOf(request).signal,
      });
    });
    const response = await POST(order(undefined, { signal: client.signal })());
    expect(await response.json()).toEqual({ aborted: false, same: true });
  });

  it("comes with what else the framework gives", async () => {
    const POST = idempotent(
      idempotency,
      {},
      (_request: Request, context: { readonly params: { readonly id: string } }) =>
        Response.json(context.params.id),
    );
    expect(await (await POST(order()(), { params: { id: "7" } })).json()).toBe("7");
  });

  it("is told apart by its parts, not by the boundary between them", async () => {
    const POST = idempotent(
      idempotency,
      {},
      async (request) => new Response(String((await request.formData()).get("a"))),
    );
    const form = (value: string): FormData => {
      const data = new FormData();
      data.set("a", value);
      return data;
    };
    const post = (value: string) => {
      const headers = { "Idempotency-Key": "form" };
      return POST(new Request("http://shop.example/forms", { method: "POST", body: form(value), headers }));
    };
    expect(await (await post("1")).text()).toBe("1");
    expect(isReplay(await post("1"))).toBe(true);
    expect((await post("2")).status).toBe(422);
  });

  it("cannot have been read before", async () => {
    const POST = idempotent(idempotency, {}, () => new Response("never"));
    const request = order()();
    await request.text();
    const refused = await POST(request);
    expect(refused.status).toBe(500);
    const { code, detail } = (await refused.json()) as Record<string, string>;
    expect(code).toBe("CONFIGURATION_INVALID");
    expect(detail).toMatch(/read a clone of a Request/);
    expect(detail).not.toMatch(/middleware/);
  });
});

describe("what a handler throws", () => {
  it("is its answer if it is a Response", async () => {
    const POST = idempotent(idempotency, {}, () => {
      count += 1;
      throw Response.json({ error: "sold out" }, { status: 422 });
    });
    const again = order();
    const first = await POST(again());
    const second = await POST(again());
    expect([first.status, second.status, count, isReplay(second)]).toEqual([422, 422, 1, true]);
    expect(await second.json()).toEqual({ error: "sold out" });
  });

  it("is thrown again and kept if Next.js redirects by it", async () => {
    const redirect = Object.assign(new Error("NEXT_REDIRECT"), { digest: "NEXT_REDIRECT;push;/thanks;303;" });
    const POST = idempotent(idempotency, {}, () => {
      count += 1;
      throw redirect;
    });
    const again = order();
    await expect(POST(again())).rejects.toBe(redirect);
    const second = await POST(again());
    expect([second.status, second.headers.get("location"), count, isReplay(second)]).toEqual([
      303,
      "/thanks",
      1,
      true,
    ]);
  });

  it("is thrown again and frees the key if it is an error", async () => {
    const POST = idempotent(idempotency, {}, () => {
      count += 1;
      if (count === 1) throw new Error("provider");
      return new Response("done");
    });
    const again = order();
    await expect(POST(again())).rejects.toThrow("provider");
    expect(await (await POST(again())).text()).toBe("done");
  });

  it("frees the key at most once, too, if it says that nothing has happened", async () => {
    const POST = idempotent(idempotency, { guarantee: "at-most-once", acceptsLostWrites: true }, () => {
      count += 1;
      if (count === 1) throw notPerformed("refused by the network");
      return new Response("done");
    });
    const again = order();
    await expect(POST(again())).rejects.toThrow("refused by the network");
    expect(await (await POST(again())).text()).toBe("done");
  });

  it("frees the key if it is Response.error(), whatever is kept", async () => {
    for (const options of [{}, { keep: () => true }]) {
      const POST = idempotent(idempotency, options, () =>
        ++count === 1 ? Response.error() : Response.json(1),
      );
      count = 0;
      const request = order();
      expect((await POST(request())).type).toBe("error");
      expect(isReplay(await POST(request()))).toBe(false);
      expect(isReplay(await POST(request()))).toBe(true);
    }
  });

  it("is an error if there is no answer at all", async () => {
    const POST = idempotent(idempotency, {}, () => undefined as unknown as Response);
    await expect(POST(order()())).rejects.toMatchObject({ code: "CONFIGURATION_INVALID" });
  });
});

describe("what is not protected", () => {
  it("is the handler's own answer, and its own throw", async () => {
    const answer = new Response("page");
    const GET = idempotent(idempotency, {}, (request) => {
      if (request.method === "GET") return answer;
      throw new Error("not here");
    });
    expect(await GET(new Request("http://shop.example/"))).toBe(answer);
    await expect(GET(new Request("http://shop.example/", { method: "OPTIONS" }))).rejects.toThrow("not here");
  });
});

describe("a repeat whose client leaves while it waits", () => {
  it("gets what nobody sees, and the work goes on", async () => {
    let finish = (): void => {};
    const held = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const POST = idempotent(idempotency, { onInFlight: { waitMs: 10_000 } }, async () => {
      count += 1;
      await held;
      return new Response("done");
    });
    const client = new AbortController();
    const again = order();
    const first = POST(again());
    const waiting = POST(new Request(again(), { signal: client.signal }));
    await new Promise((resolve) => setTimeout(resolve, 20));
    client.abort();
    expect((await waiting).status).toBe(499);
    finish();
    expect(await (await first).text()).toBe("done");
    expect(count).toBe(1);
  });
});

describe("the operation", () => {
  it("is the actual path, unless it is named", async () => {
    const answers = async (options: { readonly operation?: string }): Promise<boolean> => {
      const POST = idempotent(
        idempotency,
        { ...options, fingerprint: "off" },
        () => new Response(String(++count)),
      );
      const headers = { "Idempotency-Key": `operation-${options.operation}` };
      const post = (path: string) =>
        POST(new Request(`http://shop.example${path}`, { method: "POST", headers }));
      await post("/orders/1?a=b");
      return isReplay(await post("/orders/2"));
    };
    expect(await answers({})).toBe(false);
    expect(await answers({ operation: "orders" })).toBe(true);
  });
});
