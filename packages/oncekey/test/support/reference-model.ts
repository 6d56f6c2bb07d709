/**
 * @module
 * What the calls of a store have to answer for one key, said a second time and shorter.
 *
 * It shares no code and no shape with the transitions: who has the key is one variable, what they asked another,
 * and an answer is a line of text. `at(now)` comes before every call.
 */

export interface Asking {
  readonly token: string;
  readonly asked: string;
  readonly holds: boolean;
  readonly maxAttempts: number | undefined;
  readonly leaseMs: number;
  readonly retentionMs: number;
}

type Phase = "absent" | "claimed" | "unknown" | "completed" | "released";
export type Verdict = "completed" | "restart" | "unknown" | "not-performed" | "forgotten";

export function referenceModel() {
  let phase: Phase = "absent";
  /** Whose it is, or was last. */
  let owner = "";
  let attempts = 0;
  let text = "";
  let leaseEnds = 0;
  let ends = 0;
  let reconciler = { token: "", until: 0 };
  /** What the last claim brought along. */
  let terms = { asked: "", holds: false, retentionMs: 0 };

  const become = (next: Phase, token: string, end: number): void => {
    phase = next;
    owner = token;
    ends = end;
    if (next !== "unknown") reconciler = { token: "", until: 0 };
  };
  const start = (asking: Asking, now: number, how: string): string => {
    attempts += 1;
    terms = asking;
    leaseEnds = now + asking.leaseMs;
    become("claimed", asking.token, leaseEnds + asking.retentionMs);
    return `claimed, attempt ${attempts}, ${how}`;
  };
  const usedUp = ({ maxAttempts = Number.POSITIVE_INFINITY }: Asking): boolean => attempts >= maxAttempts;
  const isReconciled = (now: number): boolean => phase === "unknown" && now < reconciler.until;
  const isUnknown = (now: number): string =>
    isReconciled(now)
      ? `in-flight, held by ${reconciler.token} for ${reconciler.until - now}`
      : `unknown, made by ${owner}, attempt ${attempts}`;
  const renew = (leaseMs: number, now: number): void => {
    leaseEnds = now + leaseMs;
    ends = leaseEnds + terms.retentionMs;
  };
  const free = (): void => {
    become("absent", "", 0);
    attempts = 0;
  };

  /** The start before this one, of which nobody knows how it ended, is all that is left, and nobody's. */
  function giveBack(now: number): void {
    reconciler = { token: "", until: 0 };
    leaseEnds = now;
    const end = phase === "unknown" ? Number.POSITIVE_INFINITY : now + terms.retentionMs;
    become(phase, `${owner}~`, end);
  }

  function claimHeld(asking: Asking, now: number): string {
    if (owner === asking.token) {
      renew(asking.leaseMs, now);
      return `claimed, attempt ${attempts}, first`;
    }
    if (now < leaseEnds) return `in-flight, held by ${owner} for ${leaseEnds - now}`;
    if (terms.holds || asking.holds) {
      become("unknown", owner, Number.POSITIVE_INFINITY);
      return isUnknown(now);
    }
    return usedUp(asking) ? `exhausted after ${attempts}` : start(asking, now, "takeover");
  }

  function say(verdict: Verdict, token: string, leaseMs: number, now: number): void {
    if (verdict === "completed") {
      text = "verdict";
      become("completed", token, now + terms.retentionMs);
    } else if (verdict === "restart") {
      start({ ...terms, token, leaseMs, maxAttempts: undefined }, now, "first");
    } else if (verdict === "unknown") {
      if (phase === "claimed") become("unknown", owner, Number.POSITIVE_INFINITY);
      reconciler = { token: "", until: 0 };
    } else if (phase === "completed") {
      free();
    } else {
      attempts = 0;
      become("released", owner, now + terms.retentionMs);
    }
  }

  return {
    phase: () => phase,
    owner: () => owner,
    attempts: () => attempts,
    /** Time has come to `now`: what has expired is as if it had never been. */
    at(now: number): void {
      if (phase !== "absent" && now >= ends) free();
    },
    claim(asking: Asking, now: number): string {
      if (phase === "absent" || phase === "released") {
        return usedUp(asking) ? `exhausted after ${attempts}` : start(asking, now, "first");
      }
      if (terms.asked !== asking.asked) return `mismatch, ${phase}`;
      if (phase === "completed") return `completed by ${owner}: ${text}`;
      return phase === "unknown" ? isUnknown(now) : claimHeld(asking, now);
    },
    extend(token: string, leaseMs: number, now: number): string {
      if (phase === "absent" || (phase === "released" && owner !== token)) return "gone";
      if (phase === "released" || owner !== token) return "replaced";
      if (phase === "claimed") renew(leaseMs, now);
      return phase === "claimed" ? "extended" : phase;
    },
    complete(asking: Asking, attempt: number, result: string, now: number): string {
      if (phase === "completed" && owner !== asking.token) return `replaced by ${owner}: ${text}`;
      if (phase === "completed") return "already";
      if (phase !== "absent" && (owner !== asking.token || phase === "released")) return "replaced";
      const how = { absent: "recreated", claimed: "stored", unknown: "late" }[phase as "absent"];
      if (phase === "absent") {
        attempts = attempt;
        terms = asking;
      }
      text = result;
      terms = { ...terms, retentionMs: asking.retentionMs };
      become("completed", asking.token, now + asking.retentionMs);
      return how;
    },
    release(token: string, started: boolean, keepAttempts: boolean, now: number): string {
      if (owner !== token || phase === "absent" || phase === "released") return "not-held";
      if (phase === "completed") return "completed";
      if (!started) attempts -= 1;
      if (attempts === 0 || (started && !keepAttempts)) free();
      else if (keepAttempts) become("released", token, now + terms.retentionMs);
      else giveBack(now);
      return "released";
    },
    markUnknown(asking: Asking, attempt: number): string {
      if (phase === "absent") {
        attempts = attempt;
        terms = asking;
      } else if (owner !== asking.token || phase === "released") {
        return "replaced";
      } else if (phase !== "claimed") {
        return phase;
      }
      become("unknown", asking.token, Number.POSITIVE_INFINITY);
      return "unknown";
    },
    reconcile(madeBy: string, token: string, leaseMs: number, now: number): string {
      if (phase !== "unknown" || owner !== madeBy) return "changed";
      if (isReconciled(now) && reconciler.token !== token) return "in-flight";
      reconciler = { token, until: now + leaseMs };
      return "reconciling";
    },
    /** A verdict on what is there, by somebody with a token of their own. */
    resolve(verdict: Verdict, token: string, leaseMs: number, now: number, evenIfLive: boolean): string {
      if (phase === "absent") return "absent";
      const lasting = { completed: "completed", restart: "claimed" }[verdict as "restart"];
      if (owner === token && phase === lasting) return "resolved";
      if (phase === "completed" && verdict !== "forgotten") return "changed";
      const live = phase === "claimed" ? now < leaseEnds : isReconciled(now) && reconciler.token !== token;
      if (live && !evenIfLive) return "live";
      say(verdict, token, leaseMs, now);
      return "resolved";
    },
  };
}

export type ReferenceModel = ReturnType<typeof referenceModel>;
