// The console's parts without a page: node test/run.mjs. The sources are TypeScript, so esbuild reads them first.

import { mkdtempSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
// In node_modules, which git ignores.
const into = mkdtempSync(join(here, "..", "node_modules", ".test-"));
try {
  const outfile = join(into, "all.mjs");
  await build({ absWorkingDir: here, entryPoints: ["all.ts"], bundle: true, platform: "node", format: "esm", outfile, logLevel: "warning" });
  await import(pathToFileURL(outfile).href);
} finally {
  rmSync(into, { recursive: true, force: true });
}
