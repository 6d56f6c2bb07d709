/**
 * @module scripts/count-tests
 *
 * Prints the sum of all test runs since the last `npm test`, as the one line that a machine reads.
 */
import { countTests } from "./vitest.mjs";

const { passed, failed, skipped } = await countTests();
console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
process.exitCode = failed === 0 && passed > 0 ? 0 : 1;
