/**
 * @module
 * What a user would write by hand: a `Map` from key to answer, with a SHA-256 of the body to notice another request.
 *
 * It has no lease, no scope, no bound, no waiting; it is the least that can be compared with.
 */
import { createHash } from "node:crypto";

/** @param {boolean} withFingerprint */
export function createFloor(withFingerprint) {
  const records = new Map();
  return {
    /** @returns {{ kind: "run" } | { kind: "refused", status: number } | { kind: "replay", status: number, body: unknown }} */
    begin(key, body) {
      const fingerprint = withFingerprint
        ? createHash("sha256").update(JSON.stringify(body)).digest("base64url")
        : "";
      const record = records.get(key);
      if (record === undefined) {
        records.set(key, { fingerprint, done: false, status: 0, body: undefined });
        return { kind: "run" };
      }
      if (record.fingerprint !== fingerprint) return { kind: "refused", status: 422 };
      if (!record.done) return { kind: "refused", status: 409 };
      return { kind: "replay", status: record.status, body: record.body };
    },
    end(key, status, body) {
      const record = records.get(key);
      if (record !== undefined) Object.assign(record, { done: true, status, body });
    },
  };
}
