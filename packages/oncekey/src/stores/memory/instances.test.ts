import { describe, expect, it } from "vitest";
import { signsOfSeveralInstances } from "./instances.js";

const host = (env: Record<string, string>, isWorker = false) => ({
  env,
  getBuiltinModule: (name: string) => (name === "node:cluster" ? { isWorker } : undefined),
});

describe("signs of several instances", () => {
  it.each([
    ["a cluster worker", host({}, true), /node:cluster/],
    ["the second instance of PM2", host({ NODE_APP_INSTANCE: "1" }), /PM2/],
    ["the first of several of PM2", host({ NODE_APP_INSTANCE: "0", instances: "4" }), /PM2/],
    ["WEB_CONCURRENCY", host({ WEB_CONCURRENCY: "2" }), /WEB_CONCURRENCY/],
    ["a second dyno", host({ DYNO: "web.12" }), /DYNO/],
    ["AWS Lambda", host({ AWS_LAMBDA_FUNCTION_NAME: "orders" }), /Lambda/],
    ["Kubernetes", host({ KUBERNETES_SERVICE_HOST: "10.0.0.1" }), /Kubernetes/],
  ])("%s is one", (_, process, sign) => {
    const signs = signsOfSeveralInstances(process);
    expect(signs).toHaveLength(1);
    expect(signs[0]).toMatch(sign);
    expect(signs[0]).toMatch(/Use a store that all of them share/);
  });

  it.each([
    ["nothing at all", undefined],
    ["no process", "deno"],
    ["a process without an environment", {}],
    ["a plain environment", host({ PATH: "/bin" })],
    [
      "one of everything",
      host({ WEB_CONCURRENCY: "1", NODE_APP_INSTANCE: "0", instances: "1", DYNO: "web.1" }),
    ],
  ])("%s is none", (_, process) => {
    expect(signsOfSeveralInstances(process)).toEqual([]);
  });

  it("reads the real process when it is given none", () => {
    expect(Array.isArray(signsOfSeveralInstances())).toBe(true);
  });
});
