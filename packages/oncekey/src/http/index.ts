/**
 * @module
 * `oncekey/http`: the protocol and its parts, for authors of adapters.
 */
export { attachWork } from "../core/work.js";
export type { CapturedAnswer, CaptureOptions, HeaderLine, WholeAnswer } from "./answer.js";
export type { ReadAhead } from "./asking.js";
export type { HttpResult } from "./done.js";
export type { Exchange } from "./exchange.js";
export { createExchange } from "./exchange.js";
export type { FingerprintRequest, FingerprintSetting } from "./fingerprint.js";
export type { NodeRoute } from "./node-exchange.js";
export { clientLeft, nodeAnswering, nodeRequest } from "./node-exchange.js";
export type { HttpArguments, HttpOptions, KeySource, Scope, ScopedHttpOptions } from "./options.js";
export type { BodyReading, Capturing, HttpAnswering, HttpRequest } from "./port.js";
export type { Messages, Problem, ProblemOptions, ProblemText } from "./problem.js";
export type { RequestBody } from "./request-body.js";
export type { Snapshot } from "./snapshot.js";
export type { WebHandling } from "./web-exchange.js";
export { answerWeb } from "./web-exchange.js";
export type { WebRoute } from "./web-request.js";
export { peekRequest, protectRequest, webRequest } from "./web-request.js";
