import { describe, expect, it } from "vitest";
import { shapeOf, withoutNames } from "./operation.js";

const shape = (route: string) => shapeOf({ route, target: "/as/sent" });
const path = (target: string) => shapeOf({ route: undefined, target });

describe("shapeOf", () => {
  it("leaves out the names of parameters and wildcards, and nothing else", () => {
    expect(shape("/orders/:id")).toBe("/orders/:");
    expect(shape("/from/:from-:to/{:format}")).toBe("/from/:-:/{:}");
    expect(shape("/o/:id(\\d+):tail")).toBe(shape("/o/:order(\\d+):rest"));
    expect(shape("/files/*path")).toBe(shape("/files/*rest"));
    expect(shape("/files{/*path}")).toBe("/files{/*}");
    expect(shape("/orders/:id")).not.toBe(shape("/orders/*id"));
  });

  it.each([
    ["escaped colons of Express", "/orders/:id\\:cancel", "/orders/:id\\:refund"],
    ["escaped colons of Fastify", "/orders/:id::cancel", "/orders/:id::refund"],
    ["text after a wildcard in Express 4", "/files*copy", "/files*move"],
    ["colons in the regular expression of a parameter", "/t/:at(\\d+:00)", "/t/:at(\\d+:30)"],
    ["colons in a class or group of it", "/t/:at((?:a:x|[b:y]))", "/t/:at((?:a:z|[b:y]))"],
    ["groups that capture nothing", "/q/:kind((?:card))", "/q/:kind((?:cash))"],
  ])("tells %s apart", (_, one, other) => {
    expect(shape(one)).not.toBe(shape(other));
  });

  it("keeps what an adapter marks as no pattern: regular expressions, and paths as sent", () => {
    const marked = (text: string) => shape(withoutNames(text));
    expect(marked("/^\\/a.*cancel$/")).not.toBe(marked("/^\\/a.*refund$/"));
    expect(marked("/a(?:x|y)\\/b/")).not.toBe(marked("/a(?:x|z)\\/b/"));
    expect(marked("/urn:acme")).not.toBe(marked("/urn:other"));
    expect(marked("/urn\\:acme")).not.toBe(marked("/urn:acme"));
    expect(marked("/orders")).toBe("/orders");
  });

  it("takes the path of a request that names no route, however its target is written", () => {
    expect(path("/payments?a=1")).toBe("/payments");
    expect(path("http://shop.example/payments?a=1#x")).toBe("/payments");
    expect(path("http://shop.example")).toBe("/");
    expect(path("*")).toBe("*");
  });
});
