/**
 * @module scripts/bite/steps
 *
 * Mistakes that can be made with steps.
 */

const steps = "core/steps.ts";

/** @type {import("./mistakes.mjs").Mistake[]} */
export const stepMistakes = [
  {
    name: "a step is named by its own name alone: operations get each other's results",
    file: "core/key.ts",
    find: "`${IDENTITY_VERSION}:step${framed(key)}${framed(name)}`",
    replace: "`${IDENTITY_VERSION}:step${framed(name)}`",
    test: "test/core/steps.test.ts",
  },
  {
    name: "a step forgets what its work was asked: a freed key gives another request the results of the first",
    file: steps,
    find: `    fingerprint,
    policy,`,
    replace: `    fingerprint: "off:" as typeof fingerprint,
    policy,`,
    test: "test/core/steps.test.ts",
  },
  {
    name: "what refuses a step is thrown as it is, and a route keeps it as its answer",
    file: steps,
    find: "throw refusalOf(error);",
    replace: "throw error;",
    test: "test/core/steps-elsewhere.test.ts",
  },
  {
    name: "a name is used for two steps: the second does nothing and gets the result of the first",
    file: steps,
    find: "} else if (names.has(name)) {",
    replace: "} else if (names.size < 0) {",
    test: "test/core/steps.test.ts",
  },
  {
    name: "a step begins though its work was taken over while it was being claimed",
    file: steps,
    find: "const lost = lossOf(of);",
    replace: "const lost = of.over ? lossOf(of) : undefined;",
    test: "test/core/steps-interrupted.test.ts",
  },
  {
    name: "a step that hangs is renewed for longer than its work",
    file: steps,
    find: "    maxRunMs: leftMs,",
    replace: "    maxRunMs: policy.maxRunMs,",
    test: "test/core/steps-interrupted.test.ts",
  },
  {
    name: "work that has ended begins further steps",
    file: steps,
    find: "if (over)",
    replace: "if (over && lease.lost() !== undefined)",
    test: "test/core/steps-ends.test.ts",
  },
  {
    name: "a process that closes refuses the steps of the work that it lets finish",
    file: steps,
    find: "    part: true,\n",
    replace: "",
    test: "test/core/steps-ends.test.ts",
  },
];
