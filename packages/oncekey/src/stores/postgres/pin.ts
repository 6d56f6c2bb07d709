/**
 * @module
 * Pinning a claim in a transaction of the application's: its row is locked in a way that its own renewals and completion pass,
 * and that a takeover, a release, a verdict and a purge do not.
 *
 * Invariants: one statement, and one more to see that both were in one transaction; nothing is waited for in the database, so that no error poisons the transaction; a row that
 * somebody locks for a moment, to end the claim or to see that it may not, is asked about again.
 */
import { systemClock } from "../../core/clock.js";
import { OncekeyError } from "../../core/errors.js";
import type { PinOutcome, PinRequest } from "../../core/store.js";
import { type CallerTransaction, callerOf, outsideTransaction } from "./caller.js";
import type { JoinStatements } from "./join-statements.js";

const LOOK_AGAIN_MS = 10;

export async function pinInTransaction(
  { pin, stillIn }: JoinStatements,
  transaction: CallerTransaction,
  { key, token, waitMs }: PinRequest,
): Promise<PinOutcome> {
  const ask = callerOf(transaction);
  const endsAtMs = systemClock.monotonicMs() + waitMs;
  for (;;) {
    const mark = crypto.randomUUID();
    const [answer] = await ask(pin, [key, token, mark]);
    if (answer === "pinned") {
      const [seen] = await ask(stillIn);
      if (seen !== mark) throw outsideTransaction();
      return { kind: "pinned" };
    }
    if (answer !== "busy") return { kind: "not-held" };
    if (systemClock.monotonicMs() >= endsAtMs) throw stillBusy();
    await new Promise<void>((resolve) => void systemClock.setTimer(resolve, LOOK_AGAIN_MS));
  }
}

function stillBusy(): OncekeyError<"RETRY_TRANSACTION"> {
  const message =
    "Another transaction holds the record of this claim. Roll this one back and repeat it from its start.";
  return new OncekeyError("RETRY_TRANSACTION", message, { retryAfterMs: 0 });
}
