/**
 * @module scripts/check-tracked
 *
 * What no tracked file may hold: a path or a host of the machine it was written on, and a test that does not run.
 * A waiver of a contract case is not a skipped test: it is named, it has a reason, and it fails when it is not needed.
 */
import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { report, root, run } from "./workspace.mjs";

/** Each pattern is put together from parts, so that this file does not find itself. */
const forbidden = [
  {
    what: "an absolute path of somebody's machine",
    pattern: new RegExp(
      `(?<![\\w./-])/(?:${["home", "Users", "root", "work", "mnt", "workspace"].join("|")})/[\\w.-]`,
    ),
  },
  { what: "a path below /tmp (make one with mkdtemp)", pattern: new RegExp(`(?<![\\w.-])${"/"}tmp/[\\w.-]`) },
  { what: "an absolute path of Windows", pattern: /(?<![\w])[A-Z]:\\\\?(?:Users|Windows|Temp)\b/ },
  { what: "where this checkout lies", pattern: literal(root.replace(/\/$/, "")) },
  { what: "the home folder of who wrote it", pattern: literal(homedir()) },
];

const skipped = {
  what: "a test that is skipped, alone or only planned",
  pattern:
    /\b(?:describe|it|test|suite)(?:\.\w+)*\.(?:skip|only|todo|skipIf|runIf|fails)\b|\b(?:xit|xdescribe|fit|fdescribe)\(/,
};

/**
 * Where nothing precedes that would make it a part of another path, or of an address such as `mysql://root@…`.
 *
 * @param {string} text
 */
function literal(text) {
  return new RegExp(`(?<![\\w./-])${text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}(?![\\w-])`);
}

/** @param {string} file */
function rulesFor(file) {
  const rules = file === "LICENSE" || file === "package-lock.json" ? [] : [...forbidden];
  if (/\.test\.[cm]?[jt]s$/.test(file)) rules.push(skipped);
  return rules;
}

const listed = await run("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], {
  quiet: true,
});
const files = listed.output
  .split("\0")
  .filter((file) => file !== "" && existsSync(join(root, file)) && !/\.(?:png|ico|gz|sqlite)$/.test(file));

const problems = [];
for (const file of files) {
  const rules = rulesFor(file);
  const lines = readFileSync(join(root, file), "utf8").split("\n");
  for (const [index, line] of lines.entries()) {
    for (const { what, pattern } of rules) {
      const found = pattern.exec(line);
      if (found) problems.push(`${file}:${index + 1} holds ${what}: ${found[0]}`);
    }
  }
}

const lockfile = readFileSync(join(root, "package-lock.json"), "utf8");
if (/"resolved": "https?:/.test(lockfile)) {
  problems.push(
    "package-lock.json names the hosts it was resolved from: run npm install with the project's .npmrc",
  );
}
report(`tracked files (${files.length})`, problems);
