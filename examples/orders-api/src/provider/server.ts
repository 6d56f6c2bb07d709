/**
 * @module
 * A payment provider that does not exist, as a process of its own. It keeps a ledger of every time that it moved money;
 * the demo believes the ledger and nobody else.
 *
 * - `POST /charges` charges a card, and honours `Idempotency-Key`: with the same key it charges once.
 * - `POST /transfers` moves money between accounts, and knows no such key: it moves it as often as it is asked.
 * - `GET /movements/:reference` says whether it happened; `GET /movements?customer=` is the ledger.
 * - `PUT /behaviour` makes it fail, lose requests, or be slow.
 */
import { randomBytes } from "node:crypto";
import express, { type Response } from "express";
import { listen, numberFrom } from "../service.js";
import type { Behaviour, Movement, MovementRequest } from "./ledger.js";

const WELL: Behaviour = { refuseNext: 0, loseNext: 0, answerAfterMs: 0 };

const ledger: Movement[] = [];
let behaviour: Behaviour = WELL;
const waiting: (() => void)[] = [];
let timer: NodeJS.Timeout | undefined;

const app = express();
app.use(express.json());

app.post("/charges", (req, res) => move("charge", req.body, req.header("Idempotency-Key"), res));
app.post("/transfers", (req, res) => move("transfer", req.body, undefined, res));

app.get("/movements/:reference", (req, res) => {
  const found = ledger.find(({ reference }) => reference === req.params.reference);
  if (found === undefined) res.status(404).json({ error: "There was no such movement." });
  else res.json(found);
});

app.get("/movements", (req, res) => {
  res.json(ledger.filter(({ customer }) => customer === req.query.customer));
});

app.get("/behaviour", (_req, res) => {
  res.json(behaviour);
});

app.put("/behaviour", (req, res) => {
  behaviour = { ...WELL, ...(req.body as Partial<Behaviour>) };
  // Whoever waits for an answer waits under the new behaviour.
  clearTimeout(timer);
  timer = undefined;
  for (const answer of waiting.splice(0)) inTurn(answer);
  res.json(behaviour);
});

/** Money moves when the request arrives; only the answer can be late. That is what makes a lost answer dangerous. */
function move(
  kind: Movement["kind"],
  request: MovementRequest,
  idempotencyKey: string | undefined,
  res: Response,
): void {
  if (take("loseNext")) return;
  if (take("refuseNext")) {
    res.status(503).json({ error: "Out of order. Nothing was moved." });
    return;
  }
  const earlier = idempotencyKey && ledger.find((movement) => movement.idempotencyKey === idempotencyKey);
  if (earlier) earlier.asked += 1;
  const { id } = earlier || enter(kind, request, idempotencyKey);
  inTurn(() => res.status(201).json({ id }));
}

function enter(
  kind: Movement["kind"],
  request: MovementRequest,
  idempotencyKey: string | undefined,
): Movement {
  const id = `${kind}-${randomBytes(5).toString("hex")}`;
  const movement: Movement = { ...request, id, kind, idempotencyKey, asked: 1 };
  ledger.push(movement);
  // For whoever wants to see the demo notice: all answers look right, and only the ledger tells.
  if (process.env.MOVES_TWICE === "1") ledger.push({ ...movement, id: `${id}-again` });
  return movement;
}

/** Uses up one of the requests that are to be refused or lost. */
function take(what: "refuseNext" | "loseNext"): boolean {
  if (behaviour[what] === 0) return false;
  behaviour = { ...behaviour, [what]: behaviour[what] - 1 };
  return true;
}

/** A slow provider answers one after the other. */
function inTurn(answer: () => void): void {
  const { answerAfterMs, answersLeft } = behaviour;
  if (answerAfterMs === 0 && answersLeft === undefined) {
    answer();
    return;
  }
  waiting.push(answer);
  timer ??= setTimeout(answerOne, answerAfterMs);
}

function answerOne(): void {
  timer = undefined;
  const { answerAfterMs, answersLeft } = behaviour;
  if (answersLeft === 0) return;
  if (answersLeft !== undefined) behaviour = { ...behaviour, answersLeft: answersLeft - 1 };
  waiting.shift()?.();
  if (waiting.length > 0) timer = setTimeout(answerOne, answerAfterMs);
}

await listen(app, numberFrom("PORT", 0));
