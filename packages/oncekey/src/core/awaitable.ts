/**
 * @module
 * Answers that may be there at once.
 *
 * A promise for each step of a request costs more than the steps (measured: about half of the time that a protected
 * request takes longer). So whatever can answer without waiting does, and only a real wait makes a promise.
 *
 * Invariant: `started` turns what is thrown at once into a rejection, so that a step fails in one way only.
 */

/** An answer, or a promise of one. */
export type Awaitable<T> = T | Promise<T>;

/** What `call` answers; what it throws comes as a rejection. */
export function started<T>(call: () => Awaitable<T>): Awaitable<T> {
  try {
    return call();
  } catch (error) {
    return Promise.reject(error);
  }
}

/** For what others answer: what is only like a promise becomes one. */
export function promised<T>(answer: Awaitable<T>): Awaitable<T> {
  return answer instanceof Promise || !isThenable(answer) ? answer : Promise.resolve(answer);
}

/** Goes on with the answer: now if it is there, later otherwise. `failed` hears of a rejection, not of what `next` throws. */
export function whenDone<T, R>(
  answer: Awaitable<T>,
  next: (answer: T) => Awaitable<R>,
  failed?: (error: unknown) => Awaitable<R>,
): Awaitable<R> {
  return answer instanceof Promise ? answer.then(next, failed) : next(answer);
}

function isThenable(answer: unknown): boolean {
  return (
    typeof answer === "object" && answer !== null && "then" in answer && typeof answer.then === "function"
  );
}
