/**
 * Exactly once from end to end on Postgres, by `run` and over HTTP: what an answer, a throw and a refused commit leave behind.
 */
import { createIdempotency, isOncekeyError } from "oncekey";
import { idempotent } from "oncekey/http/fetch";
import { describe, expect, it, onTestFinished } from "vitest";
import { deferred } from "../../core/processes.js";
import { postgresUrl } from "../support/servers.js";
import { drivers, openPool, openStore } from "./fixture.js";

const url = await postgresUrl();

/** Work on either client, by the one method that both have. */
interface Writes {
  query?(text: string): Promise<unknown>;
  unsafe?(text: string): Promise<unknown>;
}
type Pay = (id: string, parent?: string) => Promise<unknown>;

describe.each(Object.keys(drivers) as (keyof typeof drivers)[])("exactly once with %s", (client) => {
  async function opened() {
    const { store, tablePrefix } = await openStore(drivers[client](url));
    const idempotency = createIdempotency({ store, scope: "global", guarantee: "exactly-once" });
    await idempotency.list();
    const outsider = openPool(url, 1);
    const payments = `${tablePrefix}payments`;
    await outsider.query(
      `CREATE TABLE ${payments} (id text PRIMARY KEY, parent text REFERENCES ${payments} DEFERRABLE INITIALLY DEFERRED)`,
    );
    await outsider.query(
      `CREATE FUNCTION ${payments}_dies() RETURNS trigger LANGUAGE plpgsql AS
       $$BEGIN RAISE EXCEPTION 'deadlock' USING ERRCODE = '40P01'; END$$;
       CREATE TRIGGER dies BEFORE INSERT ON ${payments} FOR EACH ROW WHEN (NEW.id = 'dies') EXECUTE FUNCTION ${payments}_dies()`,
    );
    onTestFinished(() => void idempotency.close({ graceMs: 0 }));
    const payOf =
      (transaction: unknown): Pay =>
      (id, parent) => {
        const { query, unsafe } = transaction as Writes;
        const values = parent === undefined ? `'${id}', NULL` : `'${id}', '${parent}'`;
        return (query ?? unsafe)?.(`INSERT INTO ${payments} VALUES (${values})`) ?? Promise.reject();
      };
    let starts = 0;
    const run = (work: (pay: Pay) => Promise<unknown>, key = "k") =>
      idempotency.run(
        { operation: "pay", key, input: 1, maxTransactionMs: 10_000 },
        async ({ transaction }) => {
          starts += 1;
          return work(payOf(transaction));
        },
      );
    const serve = (
      work: (pay: Pay) => Promise<Response>,
      commitWhen?: (answer: { status: number }) => boolean,
    ) => {
      const handler = idempotent(
        idempotency,
        { operation: "POST /pay", ...(commitWhen && { commitWhen }) },
        (request) => {
          starts += 1;
          return work(payOf(idempotency.workOf(request).transaction));
        },
      );
      const headers = { "idempotency-key": "k" };
      return async () => {
        const answer = await handler(new Request("http://shop/pay", { method: "POST", headers, body: "{}" }));
        const replayed = answer.headers.get("idempotency-replayed");
        return { status: answer.status, body: await answer.text(), replayed };
      };
    };
    const rows = async () =>
      (await outsider.query<{ id: string }>(`SELECT id FROM ${payments} ORDER BY id`)).rows.map(
        ({ id }) => id,
      );
    return { idempotency, run, serve, rows, starts: () => starts };
  }

  const codeOf = (promise: Promise<unknown>): Promise<unknown> =>
    promise.catch((error: unknown) => (isOncekeyError(error) ? error.code : error));

  it("keeps rows and result together, by run and over HTTP, and repeats replay", async () => {
    const { run, serve, rows, starts } = await opened();
    const work = (pay: Pay) => pay("by run").then(() => "done");
    expect([await run(work), await run(work)]).toEqual(["done", "done"]);
    const post = serve(async (pay) => {
      await pay("by http");
      return new Response("paid", { status: 201 });
    });
    expect(await post()).toEqual({ status: 201, body: "paid", replayed: null });
    expect(await post()).toEqual({ status: 201, body: "paid", replayed: "true" });
    expect([await rows(), starts()]).toEqual([["by http", "by run"], 2]);
  });

  it("keeps a refusal without its rows, or with them where commitWhen says so", async () => {
    const { serve, rows, starts } = await opened();
    const declined = async (pay: Pay) => {
      await pay("half");
      return new Response("declined", { status: 402 });
    };
    const post = serve(declined);
    expect([(await post()).status, await post()]).toEqual([
      402,
      { status: 402, body: "declined", replayed: "true" },
    ]);
    expect([await rows(), starts()]).toEqual([[], 1]);
    const other = await opened();
    const kept = other.serve(declined, ({ status }) => status === 402);
    expect([(await kept()).status, await other.rows()]).toEqual([402, ["half"]]);
  });

  it("leaves nothing of work that throws, or that answers 500, and the key is free", async () => {
    const { run, serve, rows, idempotency } = await opened();
    const failing = run(async (pay) => {
      await pay("half");
      throw new Error("declined");
    });
    await expect(failing).rejects.toThrow("declined");
    const broken = serve(async (pay) => {
      await pay("half");
      return new Response("broken", { status: 500 });
    });
    expect((await broken()).status).toBe(500);
    expect([await rows(), (await idempotency.list()).records]).toEqual([[], []]);
  });

  it("repeats work whose commit is refused in run, never over HTTP, and then frees the key", async () => {
    const { run, serve, rows, starts, idempotency } = await opened();
    const orphan = (pay: Pay) => pay("child", "nobody");
    expect(await codeOf(run(orphan))).toBe("NOT_COMMITTED");
    expect(starts()).toBe(3);
    const post = serve(async (pay) => {
      await orphan(pay);
      return new Response("paid", { status: 201 });
    });
    const { status, body } = await post();
    expect([status, JSON.parse(body)]).toMatchObject([503, { code: "NOT_COMMITTED", retryable: true }]);
    expect([starts(), await rows(), (await idempotency.list()).records]).toEqual([4, [], []]);
    let tries = 0;
    const cured = run(async (pay) => {
      tries += 1;
      await (tries < 3 ? orphan(pay) : pay("third"));
      return tries;
    });
    expect([await cured, await rows()]).toEqual([3, ["third"]]);
  });

  it("repeats work that a deadlock has undone", async () => {
    const { run, rows, starts } = await opened();
    const met = deferred();
    let waiting = 0;
    const clash = (mine: string, theirs: string) => {
      let tries = 0;
      return run(async (pay) => {
        tries += 1;
        if (tries > 1) return pay(`${mine} again`);
        await pay(mine);
        waiting += 1;
        if (waiting === 2) met.resolve();
        await met.promise;
        return pay(theirs);
      }, mine).then(() => tries);
    };
    const tries = await Promise.all([clash("a", "b"), clash("b", "a")]);
    expect([tries.toSorted(), starts()]).toEqual([[1, 2], 3]);
    expect(await rows()).toEqual(["a", "b", tries[0] === 2 ? "a again" : "b again"].toSorted());
  });

  it("gives work up that a deadlock undoes every time, and frees the key", async () => {
    const { run, rows, starts, idempotency } = await opened();
    expect(await codeOf(run((pay) => pay("once").then(() => pay("dies"))))).toBe("NOT_COMMITTED");
    expect([starts(), await rows(), (await idempotency.list()).records]).toEqual([3, [], []]);
  });

  it("notices a transaction that had failed under work which went on", async () => {
    const { serve, rows, idempotency } = await opened();
    const post = serve(async (pay) => {
      await pay("once");
      await pay("once").catch(() => undefined);
      return new Response("paid", { status: 201 });
    });
    expect((await post()).status).toBe(503);
    expect([await rows(), (await idempotency.list()).records]).toEqual([[], []]);
  });
});
