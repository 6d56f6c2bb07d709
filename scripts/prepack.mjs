/**
 * @module scripts/prepack
 *
 * Run by npm before it packs the library: a build without leftovers of deleted sources, and the two files that npm shows, which
 * stand at the root of the repository.
 */
import { copyFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { library, root, run } from "./workspace.mjs";

await rm(join(library, "dist"), { recursive: true, force: true });
const { code } = await run("npm", ["run", "--silent", "build"]);
for (const file of ["README.md", "LICENSE"]) await copyFile(join(root, file), join(library, file));
process.exitCode = code;
