/**
 * @module
 * The contract of claiming: one executor, repeatable claims, and the fingerprint before everything else.
 */
import { bytesOf, claimRequest, fingerprint, foreignFingerprint, newToken, repeatOf } from "../requests.js";
import { equal, has, kind, ok } from "./check.js";
import { group, SHORT_MS, type StoreContext } from "./context.js";
import { completion, inEveryState } from "./scenes.js";

const CLAIMS = 64;
const CONNECTIONS = 4;

export const claiming = group("claiming", [
  {
    name: "a key that nobody has seen is claimed",
    why: "Nothing could ever run.",
    async run({ store }) {
      equal(
        await store.claim(claimRequest()),
        { kind: "claimed", attempt: 1, takeover: false, compared: true },
        "the first claim",
      );
    },
  },
  {
    name: "of 64 concurrent claims exactly one wins",
    why: "Two winners are a double charge; none is a key that is stuck.",
    async run({ connections, raceRounds }) {
      const stores = await connections(CONNECTIONS);
      for (let round = 0; round < raceRounds; round++) {
        const request = claimRequest();
        const requests = Array.from({ length: CLAIMS }, () => repeatOf(request));
        const answers = await Promise.all(
          requests.map((one, index) => stores[index % CONNECTIONS]?.claim(one)),
        );
        const winners = requests.filter((_, index) => answers[index]?.kind === "claimed");
        equal(winners.length, 1, `claims won in round ${round}`);
        for (const answer of answers) {
          if (answer?.kind === "claimed") continue;
          has(answer, { kind: "in-flight", holder: winners[0]?.token }, `a loser in round ${round}`);
        }
      }
    },
  },
  {
    name: "a claim asked again with its token is the same claim",
    why: "The answer was lost on the wire: the caller would find its own claim in its way until the lease ends.",
    async run({ store, lapse }) {
      const request = claimRequest({ leaseMs: SHORT_MS });
      await store.claim(request);
      const same = { kind: "claimed", attempt: 1, takeover: false, compared: true };
      equal(await store.claim(request), same, "asked again at once");
      await lapse();
      equal(await store.claim(request), same, "asked again after its lease lapsed");
      kind(await store.claim(repeatOf(request)), "in-flight", "somebody else, after the lease was renewed");
    },
  },
  {
    name: "one token that asks several times at once has one claim",
    why: "A timed-out claim that is asked again overlaps with itself.",
    async run({ connections }) {
      const stores = await connections(CONNECTIONS);
      const request = claimRequest();
      const answers = await Promise.all([...stores, ...stores].map((store) => store.claim(request)));
      for (const answer of answers) has(answer, { kind: "claimed", attempt: 1 }, "each answer");
    },
  },
  {
    name: "a claim that is held says by whom and for how long",
    why: "Retry-After, waiting and the refusal all read it.",
    async run({ store, sleep }) {
      const request = claimRequest({ leaseMs: 30_000 });
      await store.claim(request);
      await sleep(50);
      const answer = kind(await store.claim(repeatOf(request)), "in-flight", "the second claim");
      equal(answer.holder, request.token, "the holder");
      ok(
        answer.remainingMs > 20_000 && answer.remainingMs <= 30_000 - 40,
        `remainingMs: ${answer.remainingMs}`,
      );
    },
  },
  {
    name: "another request under the key is a mismatch in every state, and changes nothing",
    why: "A reused key would replay the wrong answer, or disturb the work of the right one.",
    run: (context) =>
      inEveryState(context, async ({ state, request }) => {
        const { store } = context;
        const before = await store.find(request.key);
        for (const token of [newToken(), request.token]) {
          const other = { ...request, token, fingerprint: fingerprint("pay 99") };
          equal(await store.claim(other), { kind: "mismatch", state }, `another request while ${state}`);
        }
        const after = await store.find(request.key);
        has(
          after,
          { version: before?.version, attempt: before?.attempt, fingerprint: before?.fingerprint },
          `the record, ${state}, after a mismatch`,
        );
      }),
  },
  {
    name: "fingerprints of different rules are not compared",
    why: "A deploy that changes the settings of the fingerprint would turn every retry into a 422.",
    async run({ store }) {
      const request = claimRequest();
      await store.claim(request);
      const foreign = repeatOf(request, { fingerprint: foreignFingerprint() });
      has(await store.claim(foreign), { kind: "in-flight", compared: false }, "while it is held");
      await store.complete(completion(request));
      has(await store.claim(foreign), { kind: "completed", compared: false }, "once it is completed");
    },
  },
  {
    name: "concurrent claims of different requests under one key do not mix",
    why: "A batch that compares its entries with each other instead of the record answers the wrong one.",
    async run({ store }) {
      const request = claimRequest();
      const requests = [0, 1, 2, 3].map((n) => repeatOf(request, { fingerprint: fingerprint(`pay ${n}`) }));
      const answers = await Promise.all(requests.map((one) => store.claim(one)));
      const kinds = answers.map((answer) => answer.kind).sort();
      equal(kinds, ["claimed", "mismatch", "mismatch", "mismatch"], "the answers");
      const info = await store.find(request.key);
      equal(
        info?.fingerprint,
        requests[answers.findIndex((one) => one.kind === "claimed")]?.fingerprint,
        "kept",
      );
    },
  },
  {
    name: "keys that look alike are different keys",
    why: "A column that ignores case or cuts text gives one customer another's answer.",
    async run(context) {
      await lookAlikes(context);
    },
  },
  {
    name: "a thousand keys at once each keep their own record",
    why: "Strangers that share a batch must not notice.",
    async run({ store }) {
      const requests = Array.from({ length: 1_000 }, () => claimRequest());
      await Promise.all(requests.map((request) => store.claim(request)));
      await Promise.all(requests.map((request) => store.complete(completion(request, request.key))));
      const answers = await Promise.all(requests.map((request) => store.claim(repeatOf(request))));
      for (const [index, answer] of answers.entries()) {
        const { key = "" } = requests[index] ?? {};
        equal(kind(answer, "completed", "a repeat").outcome.body, bytesOf(key), "its answer");
      }
    },
  },
]);

async function lookAlikes({ store }: StoreContext): Promise<void> {
  const { key, ...rest } = claimRequest();
  const flipCase = (text: string): string =>
    text.replace(/[a-z]/i, (letter) => (letter < "a" ? letter.toLowerCase() : letter.toUpperCase()));
  const alike = [key, flipCase(key), `${key.slice(0, -1)}-`, `${key.slice(0, -1)}_`, `-${key.slice(1)}`];
  const requests = [...new Set(alike)].map((one) =>
    claimRequest({ ...rest, key: one as typeof key, token: newToken() }),
  );
  for (const request of requests)
    has(await store.claim(request), { kind: "claimed", attempt: 1 }, request.key);
  for (const request of requests) await store.complete(completion(request, request.key));
  for (const request of requests) {
    const answer = kind(await store.claim(repeatOf(request)), "completed", request.key);
    equal(answer.outcome.body, bytesOf(request.key), "its own answer");
  }
}
