/**
 * @module
 * Requests to fingerprint, and how two of them compare.
 */
import { compareFingerprints } from "../../src/core/fingerprint.js";
import {
  createFingerprinter,
  type FingerprintRequest,
  type FingerprintSetting,
} from "../../src/http/fingerprint.js";
import type { RequestBody } from "../../src/http/request-body.js";

export const encode = (text: string) => new TextEncoder().encode(text);
export const bytesBody = (text: string): RequestBody => ({ kind: "bytes", bytes: encode(text) });
export const textBody = (text: string): RequestBody => ({ kind: "text", text });
export const parsedBody = (value: unknown): RequestBody => ({ kind: "parsed", value });
export const none: RequestBody = { kind: "none" };

export function request(
  body: RequestBody,
  contentType?: string,
  target = "/orders",
  method = "POST",
): FingerprintRequest {
  return { method, target, contentType, body };
}

export const json = (body: RequestBody, contentType = "application/json") => request(body, contentType);
export const form = (body: RequestBody) => request(body, "application/x-www-form-urlencoded");

export function compare(a: FingerprintRequest, b: FingerprintRequest, setting?: FingerprintSetting) {
  const fingerprint = createFingerprinter(setting);
  return compareFingerprints(fingerprint(a), fingerprint(b));
}
