/**
 * Decorators of both kinds, compiled by TypeScript: not every version of the test runner's own compiler knows the standard ones.
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { createIdempotency } from "oncekey";
import { Idempotent } from "oncekey/functions";
import { memoryStore } from "oncekey/stores/memory";
import ts from "typescript";
import { describe, expect, it } from "vitest";
import type * as Decorated from "./decorated.js";

const file = (name: string) => fileURLToPath(new URL(name, import.meta.url));

async function orders(experimentalDecorators: boolean) {
  const compilerOptions = { target: ts.ScriptTarget.ES2022, experimentalDecorators };
  const { outputText } = ts.transpileModule(readFileSync(file("decorated.ts"), "utf8"), { compilerOptions });
  const { decorated }: typeof Decorated = await import(
    /* @vite-ignore */ `data:text/javascript,${encodeURIComponent(outputText)}`
  );
  const idempotency = createIdempotency({ store: memoryStore({ sweepIntervalMs: 0 }) });
  return { Orders: decorated(Idempotent as never, idempotency), idempotency };
}

const ORDER = { id: "order-1", tenant: "acme" };

describe.each([
  ["standard", false],
  ["legacy", true],
] as const)("a method with a %s decorator", (_, experimentalDecorators) => {
  it("runs once for each key, with its object as this and all its arguments", async () => {
    const { Orders } = await orders(experimentalDecorators);
    const [here, there] = [new Orders(), new Orders()];
    expect(await Promise.all([here.create(ORDER), here.create(ORDER), there.create(ORDER)])).toEqual(
      Array(3).fill("created order-1"),
    );
    expect(await there.create({ ...ORDER, id: "order-2" }, "gift")).toBe("created order-2");
    expect([here.log, there.log]).toEqual([["order-1 none 1"], ["order-2 gift 1"]]);
    const reused = here.create(ORDER, "another note");
    await expect(reused).rejects.toMatchObject({ code: "KEY_REUSED" });
  });

  it("may be generic, and find its instance late, or on its object", async () => {
    const { Orders } = await orders(experimentalDecorators);
    const some = new Orders();
    expect((await some.refund({ ...ORDER, extra: 1 }, 5)).extra).toBe(1);
    expect([await some.close(), await some.close()]).toEqual([2, 2]);
    const uninjected = Object.assign(new Orders(), { idempotency: undefined });
    await expect(uninjected.close()).rejects.toMatchObject({ code: "CONFIGURATION_INVALID" });
  });

  it("may be static", async () => {
    const { Orders } = await orders(experimentalDecorators);
    expect(await Orders.count()).toBe("Orders");
  });

  it("looks like the method that it was", async () => {
    const { Orders } = await orders(experimentalDecorators);
    const { name, length } = Orders.prototype.create;
    expect([name, length]).toEqual(["create", 1]);
    expect(Object.keys(Orders.prototype)).toEqual([]);
  });
});

describe("a decorator", () => {
  it("checks its options when the class is made, and that it stands on a method", async () => {
    const { idempotency } = await orders(false);
    const sound = { operation: "create", scope: "a", key: "k" };
    expect(() => Idempotent(idempotency, { ...sound, operation: "" })).toThrow(/operation must be a text/);
    expect(() => Idempotent(idempotency, { ...sound, leaseMs: 0 })).toThrow(/leaseMs/);
    const standsOn = (...args: unknown[]) =>
      Reflect.apply(Idempotent(idempotency, sound), undefined, args) as unknown;
    expect(() => standsOn(undefined, { kind: "field" })).toThrow(/must stand on a method/);
    expect(() => standsOn(() => 1, { kind: "getter" })).toThrow(/must stand on a method/);
    expect(() => standsOn({}, "name", { get: () => 1 })).toThrow(/must stand on a method/);
    expect(() => standsOn({}, "name")).toThrow(/must stand on a method/);
  });

  it("keeps metadata that other decorators have noted on the method", async () => {
    const { idempotency } = await orders(true);
    const noted = new WeakMap<object, string>();
    /** As `reflect-metadata` looks for it. */
    const noteOf = (at: object | null): string | undefined =>
      at === null ? undefined : (noted.get(at) ?? noteOf(Object.getPrototypeOf(at)));
    const method = async () => 1;
    noted.set(method, "POST /orders");
    const decorator = Idempotent(idempotency, { operation: "create", scope: "a", key: "k" });
    const { value } = decorator({}, "create", { value: method, writable: true });
    expect(noteOf(value as object)).toBe("POST /orders");
  });

  it("of the legacy kind is typed as the standard one, which the rest of the tests is compiled with", {
    timeout: 120_000,
  }, () => {
    const { config } = ts.readConfigFile(file("../../tsconfig.test.json"), ts.sys.readFile);
    const { options } = ts.parseJsonConfigFileContent(config, ts.sys, file("../.."));
    const { tsBuildInfoFile: _, ...rest } = { ...options, incremental: false, experimentalDecorators: true };
    const program = ts.createProgram(["decorated.ts", "decorators.types.test.ts"].map(file), rest);
    const found = ts.getPreEmitDiagnostics(program).map((one) => [one.file?.fileName, one.messageText]);
    expect(found).toEqual([]);
  });
});
