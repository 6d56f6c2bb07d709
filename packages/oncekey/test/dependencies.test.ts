import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const library = fileURLToPath(new URL("../", import.meta.url));
const manifest: { readonly dependencies: Readonly<Record<string, string>> } = JSON.parse(
  readFileSync(`${library}package.json`, "utf8"),
);

/** What a source imports when it runs: types are gone by then (`verbatimModuleSyntax`). */
function importsOf(file: string): string[] {
  const source = readFileSync(`${library}src/${file}`, "utf8");
  const statements =
    /^(?:import|export)\s+(?!type\b)[^;"]*?\bfrom\s+"([^"]+)"|^import\s+"([^"]+)"|\bimport\(\s*"([^"]+)"/gm;
  return [...source.matchAll(statements)].map(([, from, alone, later]) => from ?? alone ?? later ?? "");
}

it("no client and no framework is imported: who has not installed one can use the rest", () => {
  const files = readdirSync(`${library}src`, { recursive: true, encoding: "utf8" }).filter(
    (file) => file.endsWith(".ts") && !file.endsWith(".test.ts"),
  );
  const own = Object.keys(manifest.dependencies);
  const foreign = files.flatMap((file) =>
    importsOf(file)
      .filter((name) => !/^(\.|node:|#platform$)/.test(name))
      .filter((name) => !own.some((dependency) => name === dependency || name.startsWith(`${dependency}/`)))
      .map((name) => `${file} imports ${name}`),
  );
  expect(files.length).toBeGreaterThan(100);
  expect(foreign).toEqual([]);
});
