/**
 * @module
 * Requests to a store, with everything in them that a test does not care about.
 *
 * Keys and tokens look like the real ones (43 characters of base64url; short texts), so a store may have
 * columns that fit those and no others.
 */
import { sha256 } from "#platform";
import { type Fingerprint, fingerprintValue } from "../core/fingerprint.js";
import type { ClaimToken, RecordKey, ScopeId } from "../core/record.js";
import type { ClaimIdentity, ClaimRequest } from "../core/store.js";

const run = crypto.randomUUID();
let made = 0;

/** A key that no other call gave. */
export function newKey(): RecordKey {
  return sha256(`key ${run} ${++made}`) as RecordKey;
}

/** A token that no other call gave. */
export function newToken(): ClaimToken {
  return `${run.slice(0, 8)}-${(++made).toString(36)}` as ClaimToken;
}

/** A scope that no other call gave. */
export function newScopeId(): ScopeId {
  return sha256(`scope ${run} ${++made}`) as ScopeId;
}

/** What was asked: two of the same text are one request. */
export function fingerprint(text: string): Fingerprint {
  return fingerprintValue(text);
}

/** A fingerprint by a rule that no other is comparable with. */
export function foreignFingerprint(): Fingerprint {
  return `x${++made}:${sha256("foreign")}` as Fingerprint;
}

/** A request to claim, each with a key and a token of its own unless they are given. */
export function claimRequest(parts: Partial<ClaimRequest> = {}): ClaimRequest {
  return {
    key: newKey(),
    scopeId: sha256("the scope of most tests") as ScopeId,
    operation: "POST /payments",
    label: undefined,
    token: newToken(),
    fingerprint: fingerprint("pay 10"),
    guarantee: "at-least-once",
    onLapse: "takeover",
    leaseMs: 30_000,
    retentionMs: 86_400_000,
    maxAttempts: undefined,
    ...parts,
  };
}

/** The same claim under another token, as a repeat makes it. */
export function repeatOf(request: ClaimRequest, parts: Partial<ClaimRequest> = {}): ClaimRequest {
  return { ...request, token: newToken(), ...parts };
}

/** Who is asking, of a claim: the part that complete, markUnknown and begin share with it. */
export function identityOf({ maxAttempts: _, ...identity }: ClaimRequest): ClaimIdentity {
  return identity;
}

const encoder = new TextEncoder();

/** Bytes of a text. */
export function bytesOf(text: string): Uint8Array {
  return encoder.encode(text);
}
