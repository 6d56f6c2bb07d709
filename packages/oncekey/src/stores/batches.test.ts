import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { RecordKey } from "../core/record.js";
import { type Asked, type BatchPort, createBatches } from "./batches.js";

interface Request {
  readonly key: RecordKey;
  readonly value: number;
  readonly bytes?: number;
}

type Port = BatchPort<Request, string>;

const ask = (key: string, value = 0): Request => ({ key: key as RecordKey, value });
const answerTo = ({ key, value }: Request): string => `${key}=${value}`;
const afterMs = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms));
const turn = () => new Promise<void>((resolve) => void setImmediate(resolve));

/** What was sent together, and what alone. */
function recorded(parts: Partial<Port> = {}) {
  const sent: string[][] = [];
  const alone: string[] = [];
  const port: Port = {
    keyOf: ({ key }) => key,
    bytesOf: ({ bytes = 1 }) => bytes,
    send: async (asked) => asked.map(({ request }) => answerTo(request)),
    alone: async ({ request }) => `${answerTo(request)} alone`,
    faultOf: () => "other",
    ...parts,
  };
  const spied: Port = {
    ...port,
    send(asked) {
      sent.push(asked.map(({ request }) => answerTo(request)));
      return port.send(asked);
    },
    alone(asked) {
      alone.push(answerTo(asked.request));
      return port.alone(asked);
    },
  };
  return { sent, alone, batches: createBatches(spied, 1_000) };
}

/** Holds every statement back until `release`. */
function heldBack() {
  const waiting: (() => void)[] = [];
  const send = async (asked: readonly Asked<Request>[]): Promise<string[]> => {
    await new Promise<void>((resolve) => void waiting.push(resolve));
    return asked.map(({ request }) => answerTo(request));
  };
  const release = (): void => {
    for (const resolve of waiting.splice(0)) resolve();
  };
  return { send, waiting, release };
}

describe("calls of one turn of the event loop", () => {
  it("share a statement, in the order of their keys, and each gets its own answer", async () => {
    const { sent, batches } = recorded();
    const answers = Promise.all([ask("c"), ask("a"), ask("b")].map(batches.submit));
    expect(await answers).toEqual(["c=0", "a=0", "b=0"]);
    expect(sent).toEqual([["a=0", "b=0", "c=0"]]);
  });

  it("send a key once; whoever else asked for it is judged by that answer", async () => {
    const judge: Port["judge"] = (request, first, answer) =>
      `${answerTo(request)} by ${first.value}: ${answer}`;
    const { sent, alone, batches } = recorded({ judge });
    const answers = await Promise.all([ask("a", 1), ask("b", 2), ask("a", 3)].map(batches.submit));
    expect(answers).toEqual(["a=1", "b=2", "a=3 by 1: a=1"]);
    expect([sent, alone]).toEqual([[["a=1", "b=2"]], []]);
  });

  it("ask for a key a second time, afterwards, where no answer can be shared", async () => {
    const { alone, batches } = recorded();
    const answers = await Promise.all([ask("a", 1), ask("a", 2), ask("a", 3)].map(batches.submit));
    expect(answers).toEqual(["a=1", "a=2 alone", "a=3 alone"]);
    expect(alone).toEqual(["a=2", "a=3"]);
  });

  it("are split where they are too large for one statement", async () => {
    const { sent, batches } = recorded();
    const large = { bytes: 600_000 };
    await Promise.all([{ ...ask("a"), ...large }, { ...ask("b"), ...large }, ask("c")].map(batches.submit));
    expect(sent).toEqual([["a=0"], ["b=0", "c=0"]]);
  });
});

describe("one that the statement passed over", () => {
  it("is asked alone, and neither its neighbours nor the next batch wait for it", async () => {
    let answer: (text: string) => void = () => undefined;
    const { batches } = recorded({
      send: async (asked) =>
        asked.map(({ request }) => (request.key === "locked" ? undefined : answerTo(request))),
      alone: () => new Promise((resolve) => (answer = resolve)),
    });
    const locked = batches.submit(ask("locked"));
    expect(await batches.submit(ask("free"))).toBe("free=0");
    expect(await batches.submit(ask("later"))).toBe("later=0");
    answer("in the end");
    expect(await locked).toBe("in the end");
  });
});

describe("a statement that failed", () => {
  const fault = (kind: ReturnType<Port["faultOf"]>): Partial<Port> => ({ faultOf: () => kind });

  it("for the data of one entry is sent again one by one, and fails that one alone", async () => {
    const send: Port["send"] = async (asked) => {
      if (asked.some(({ request }) => request.key === "poison")) throw new Error("poison");
      return asked.map(({ request }) => answerTo(request));
    };
    const { batches } = recorded({ send, ...fault("entry") });
    const all = await Promise.allSettled(["a", "poison", "z"].map((key) => batches.submit(ask(key))));
    expect(all.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  });

  it("in passing is repeated once, as it was", async () => {
    let failures = 1;
    const send: Port["send"] = async (asked) => {
      if (failures-- > 0) throw new Error("deadlock");
      return asked.map(({ request }) => answerTo(request));
    };
    const { sent, batches } = recorded({ send, ...fault("passing") });
    expect(await batches.submit(ask("a", 7))).toBe("a=7");
    expect(sent).toEqual([["a=7"], ["a=7"]]);
    failures = 2;
    await expect(batches.submit(ask("b"))).rejects.toThrow("deadlock");
    expect(sent).toHaveLength(4);
  });

  it("of the store itself leaves nobody without an answer, and the next batch is sent", async () => {
    const faulty = () => {
      throw new TypeError("a fault of the store");
    };
    const { batches } = recorded({ judge: faulty });
    const answers = await Promise.allSettled(["a", "a", "b"].map((key) => batches.submit(ask(key))));
    expect(answers.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "rejected"]);
    for (let n = 0; n < 3; n += 1) expect(await batches.submit(ask("c"))).toBe("c=0");
    await batches.drained();
  });

  it("otherwise fails everybody in it, also those of the same key, and is not repeated", async () => {
    const send: Port["send"] = () => Promise.reject(new Error("down"));
    const { sent, alone, batches } = recorded({ send });
    const all = await Promise.allSettled([ask("a", 1), ask("a", 2), ask("b")].map(batches.submit));
    expect(all.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
    expect([sent.length, alone.length]).toEqual([1, 0]);
  });
});

describe("a server that is slow", () => {
  it("has two statements at a time, and what comes meanwhile goes together", async () => {
    const { send, release } = heldBack();
    const { sent, batches } = recorded({ send });
    const all: Promise<string>[] = [];
    const submit = (key: string): void => void all.push(batches.submit(ask(key)));
    submit("a");
    await turn();
    submit("b");
    submit("c");
    await turn();
    expect(sent, "a small one waits for the first").toEqual([["a=0"]]);
    await afterMs(20);
    expect(sent, "but not for long").toEqual([["a=0"], ["b=0", "c=0"]]);
    for (const key of ["d", "e"]) {
      submit(key);
      await afterMs(20);
    }
    expect(sent, "and there is no third").toHaveLength(2);
    release();
    await afterMs(5);
    expect(sent.at(-1)).toEqual(["d=0", "e=0"]);
    release();
    expect(await Promise.all(all)).toEqual(["a=0", "b=0", "c=0", "d=0", "e=0"]);
  });

  it("is sent a large batch beside the first, without waiting", async () => {
    const { send, release } = heldBack();
    const { sent, batches } = recorded({ send });
    const first = batches.submit(ask("a"));
    await turn();
    const many = Array.from({ length: 64 }, (_, index) => batches.submit(ask(`k${index}`)));
    await turn();
    expect(sent.map(({ length }) => length)).toEqual([1, 64]);
    release();
    await Promise.all([first, ...many]);
  });

  it("is not sent what has waited too long: that has changed nothing, and says so", async () => {
    const { send, release } = heldBack();
    const port: Port = {
      keyOf: ({ key }) => key,
      bytesOf: () => 1,
      send,
      alone: async () => "alone",
      faultOf: () => "other",
    };
    const batches = createBatches(port, 60);
    const first = batches.submit(ask("a"));
    await turn();
    const second = batches.submit(ask("b"));
    await afterMs(20);
    await expect(batches.submit(ask("late"))).rejects.toMatchObject({
      code: "STORE_UNAVAILABLE",
      message: expect.stringContaining("Nothing was changed"),
    });
    release();
    expect(await Promise.all([first, second])).toEqual(["a=0", "b=0"]);
  });

  it("refuses more than can wait, and takes calls again afterwards", async () => {
    const { send, release, waiting } = heldBack();
    const { batches } = recorded({ send });
    const first = [batches.submit(ask("a"))];
    await turn();
    first.push(batches.submit(ask("b")));
    await afterMs(20);
    const many = Array.from({ length: 9_998 }, (_, index) => batches.submit(ask(`k${index}`)));
    await expect(batches.submit(ask("too many"))).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
    const settled = Promise.all([...first, ...many]);
    const timer = setInterval(release, 1);
    await settled;
    expect(waiting).toHaveLength(0);
    expect(await batches.submit(ask("again"))).toBe("again=0");
    clearInterval(timer);
  });
});

describe("whoever closes", () => {
  it("waits for everybody, also for those who are asked alone", async () => {
    const { batches } = recorded({ send: async (asked) => asked.map(() => undefined) });
    let answered = false;
    void batches.submit(ask("a")).then(() => {
      answered = true;
    });
    await batches.drained();
    expect(answered).toBe(true);
    await batches.drained();
  });
});

describe("any calls, however their statements end", () => {
  it("are each answered exactly once, with an answer to their own key", async () => {
    const calls = fc.array(fc.record({ key: fc.constantFrom("a", "b", "c", "d"), pause: fc.boolean() }), {
      maxLength: 30,
    });
    const ends = fc.infiniteStream(fc.constantFrom("fine", "passed", "entry", "passing", "other"));
    await fc.assert(
      fc.asyncProperty(calls, ends, async (all, endings) => {
        const nextEnd = (): string => endings.next().value ?? "fine";
        const { batches } = recorded({
          async send(asked) {
            const end = nextEnd();
            await turn();
            if (end === "fine") return asked.map(({ request }) => answerTo(request));
            if (end === "passed") return asked.map(() => undefined);
            throw new Error(end);
          },
          faultOf: (error) => (error as Error).message as ReturnType<Port["faultOf"]>,
        });
        const answers = await Promise.allSettled(
          all.map(async ({ key, pause }, value) => {
            if (pause) await turn();
            return batches.submit(ask(key, value));
          }),
        );
        for (const [value, answer] of answers.entries()) {
          if (answer.status === "rejected") continue;
          expect(answer.value.replace(" alone", "")).toBe(`${all[value]?.key}=${value}`);
        }
        await batches.drained();
      }),
      { numRuns: 60 },
    );
  });
});
