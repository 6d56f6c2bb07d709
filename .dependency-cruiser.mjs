/**
 * Who may import what. The picture is in ARCHITECTURE.md; this is what holds it.
 *
 * "Core decides, stores move records, adapters translate": a rule here that is in the way is a sign that a decision has left the
 * core, or that a translation has entered it.
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const manifest = JSON.parse(readFileSync(new URL("packages/oncekey/package.json", import.meta.url), "utf8"));
const src = "^packages/oncekey/src";
/** As it is written, and as it resolves once the library is built. */
const platform = "^(#platform$|packages/oncekey/dist/platform/)";
const tests = "(\\.test\\.(ts|mjs)$|/test/)";

/** The adapters of a family are its exported files; what is left in its folder (the exchange, the delivery, …) they share. */
function adaptersOf(family) {
  return Object.keys(manifest.exports)
    .filter((subpath) => subpath.startsWith(`./${family}/`))
    .map((subpath) => subpath.slice(`./${family}/`.length))
    .join("|");
}
const adapters = adaptersOf("http");
/** Without one, a pattern that nothing matches. */
const consumers = adaptersOf("consumers") || "(?!)";

export default {
  forbidden: [
    {
      name: "no-cycles",
      comment: "Two modules that need each other are one module, or hide a third.",
      severity: "error",
      from: {},
      to: { circular: true },
    },
    {
      name: "nothing-unresolved",
      comment:
        "What the library's own subpaths resolve to is built; the compiler and check:exports look after those.",
      severity: "error",
      from: {},
      to: { couldNotResolve: true, pathNot: "^(#platform|oncekey)(/|$)" },
    },
    {
      name: "core-stands-alone",
      comment:
        "The core runs wherever Web-platform globals exist. What differs between platforms is #platform.",
      severity: "error",
      from: { path: `${src}/core/`, pathNot: tests },
      to: { pathNot: [`${src}/core/`, platform, "node_modules/devalue/"] },
    },
    {
      name: "platform-knows-nobody",
      severity: "error",
      from: { path: `${src}/platform/`, pathNot: tests },
      to: { path: src, pathNot: `${src}/platform/` },
    },
    {
      name: "presets-are-plain-policy",
      severity: "error",
      from: { path: `${src}/presets/`, pathNot: tests },
      to: { pathNot: `${src}/(presets|core)/` },
    },
    {
      name: "http-knows-core-and-itself",
      severity: "error",
      from: { path: `${src}/http/`, pathNot: tests },
      to: { path: src, pathNot: `${src}/(http|core|platform)/` },
    },
    {
      name: "adapters-know-no-adapter",
      comment: "What two frameworks share belongs in a file of http/ that is not an adapter.",
      severity: "error",
      from: { path: `${src}/http/(${adapters})[./]`, pathNot: tests },
      to: { path: `${src}/http/(${adapters})[./]`, pathNot: `${src}/http/$1[./]` },
    },
    {
      name: "consumers-know-core-and-themselves",
      severity: "error",
      from: { path: `${src}/consumers/`, pathNot: tests },
      to: { path: src, pathNot: `${src}/(consumers|core|platform)/` },
    },
    {
      name: "consumers-of-one-broker-know-no-other",
      comment: "What two brokers share belongs in a file of consumers/ that is not an adapter.",
      severity: "error",
      from: { path: `${src}/consumers/(${consumers})[./]`, pathNot: tests },
      to: { path: `${src}/consumers/(${consumers})[./]`, pathNot: `${src}/consumers/$1[./]` },
    },
    {
      name: "functions-know-core-and-themselves",
      severity: "error",
      from: { path: `${src}/functions/`, pathNot: tests },
      to: { path: src, pathNot: `${src}/(functions|core|platform)/` },
    },
    {
      name: "jobs-know-core-and-themselves",
      severity: "error",
      from: { path: `${src}/jobs/`, pathNot: tests },
      to: { path: src, pathNot: `${src}/(jobs|core|platform)/` },
    },
    {
      name: "schedulers-know-no-scheduler",
      comment: "What two schedulers share belongs in a file of jobs/ that is not an adapter.",
      severity: "error",
      from: { path: `${src}/jobs/(croner|node-cron|index)\\.ts$` },
      to: { path: `${src}/jobs/(croner|node-cron|index)\\.ts$` },
    },
    {
      name: "stores-know-core-and-themselves",
      comment: "A store never reaches into another one; what all stores share lies directly in stores/.",
      severity: "error",
      from: { path: `${src}/stores/([^/]+)/`, pathNot: tests },
      to: {
        path: src,
        pathNot: [`${src}/stores/$1/`, `${src}/stores/[^/]+\\.ts$`, `${src}/(core|platform)/`],
      },
    },
    {
      name: "testing-knows-no-store",
      comment: "A contract that knows one of its implementations is a description of it.",
      severity: "error",
      from: { path: `${src}/testing/`, pathNot: tests },
      to: { path: src, pathNot: `${src}/(testing|core|platform)/` },
    },
    {
      name: "no-client-at-run-time",
      comment:
        "Users bring their own client: `import type` only. The two dependencies of the library are named here.",
      severity: "error",
      from: { path: src, pathNot: tests },
      to: {
        path: "node_modules/",
        pathNot: ["node_modules/devalue/", "node_modules/@noble/hashes/"],
        dependencyTypesNot: ["type-only"],
      },
    },
    {
      name: "noble-only-on-the-web",
      comment: "A platform with its own hash uses that; the others pay for @noble/hashes.",
      severity: "error",
      from: { path: src, pathNot: `${src}/platform/web(\\.test)?\\.ts$` },
      to: { path: "node_modules/@noble/hashes/" },
    },
    {
      name: "tests-are-leaves",
      severity: "error",
      from: { path: "^packages/", pathNot: tests },
      to: { path: tests },
    },
    {
      name: "programs-use-public-subpaths",
      comment:
        "Examples and benchmarks are users: what they need and the export map lacks, every user lacks.",
      severity: "error",
      from: { path: "^(examples|bench)/" },
      to: { path: "^packages/", dependencyTypes: ["local"] },
    },
  ],
  options: {
    doNotFollow: { path: ["node_modules", "^packages/[^/]+/dist/"] },
    exclude: { path: ["/dist/(?!platform)", "^node_modules/\\.cache/"] },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: fileURLToPath(new URL("packages/oncekey/tsconfig.test.json", import.meta.url)) },
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["types", "import", "node", "default"],
      extensions: [".ts", ".mjs", ".js", ".d.ts"],
    },
    reporterOptions: { text: { highlightFocused: true } },
  },
};
