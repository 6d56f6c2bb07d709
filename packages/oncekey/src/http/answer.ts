/**
 * @module
 * What an answer is, whatever it was made with: its lines, the whole of it, and what a capture makes of it.
 *
 * Invariant: no platform's types stand here, so that every adapter can use them.
 */
import type { Clock } from "../core/clock.js";

/** One field line, as it goes over the wire. */
export type HeaderLine = readonly [name: string, value: string];

/** Lists to which every layer adds its own: what CORS or compression has said so far stays true. */
export const SHARED_LISTS: ReadonlySet<string> = new Set(["vary", "access-control-expose-headers"]);

/** A complete answer, such as a replay or a refusal. */
export interface WholeAnswer {
  readonly status: number;
  readonly headers: readonly HeaderLine[];
  readonly body: Uint8Array;
}

export interface CaptureOptions {
  /** What waits for `release`: the end of the answer, or all of it. */
  readonly hold: "end" | "everything";
  /** A larger body passes whole and is only counted. */
  readonly maxResultBytes: number;
  /** How long an answer that has begun may go on after its client has left. */
  readonly drainMs: number;
  readonly clock: Clock;
}

export type CapturedAnswer =
  | {
      readonly kind: "answered";
      readonly status: number;
      /** Every line that was set, those of outer layers included. */
      readonly headers: readonly HeaderLine[];
      /** `undefined`: too large, or cut off after the client had left. */
      readonly body: Uint8Array | undefined;
      /** What the handler threw, where the answer was made of that and the adapter can tell. */
      readonly thrown?: unknown;
    }
  /** Thrown and not answered, destroyed by the handler or its framework, or shorter than its Content-Length. */
  | { readonly kind: "aborted"; readonly status: number | undefined; readonly thrown?: unknown }
  /** Only with `hold: "everything"`: a stream that cannot be held whole. `replaceWith` has to follow. */
  | { readonly kind: "outgrown"; readonly status: number };
