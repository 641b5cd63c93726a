// Builds the console into ../dist, which the crate embeds. The same sources give the same bytes: the tools are pinned by the
// lock file, names carry a hash of the content, and gzip is written by a pinned library without a date.
//
//   npm ci --ignore-scripts && npm run build [-- --into DIRECTORY]

import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { gzipSync } from "fflate";

const here = dirname(fileURLToPath(import.meta.url));
const into = process.argv.indexOf("--into");
const dist = into > 0 ? process.argv[into + 1] : join(here, "..", "dist");
const SIZE_MAX = 400 * 1024;

const digest = (bytes) => createHash("sha256").update(bytes).digest("hex");
const hashed = (name, bytes) => name.replace(/(\.\w+)$/, `-${digest(bytes).slice(0, 10)}$1`);

async function bundle(entry) {
  const result = await build({
    absWorkingDir: here,
    entryPoints: [entry],
    bundle: true,
    write: false,
    minify: true,
    format: "esm",
    target: ["es2022"],
    jsx: "automatic",
    jsxImportSource: "preact",
    charset: "utf8",
    legalComments: "none",
    logLevel: "warning",
  });
  return Buffer.from(result.outputFiles[0].contents);
}

// The notices that the libraries' licences ask for.
function licences() {
  const lock = JSON.parse(readFileSync(join(here, "package-lock.json"), "utf8")).packages;
  const shipped = Object.keys(lock).filter((path) => path && !lock[path].dev).sort();
  const texts = shipped.map((path) => {
    const folder = join(here, path);
    const name = readdirSync(folder).find((file) => /^licen[cs]e/i.test(file));
    const text = name ? readFileSync(join(folder, name), "utf8").trim() : `Licence: ${lock[path].license}`;
    return `${path.replace("node_modules/", "")} ${lock[path].version}\n\n${text}\n`;
  });
  return Buffer.from(`The console contains these libraries.\n\n${texts.join("\n----\n\n")}`);
}

const [script, style] = [await bundle("src/main.tsx"), await bundle("src/styles/all.css")];
const icon = readFileSync(join(here, "src", "icon.svg"));
const names = { script: hashed("console.js", script), style: hashed("console.css", style), icon: hashed("icon.svg", icon) };
const page = Buffer.from(
  readFileSync(join(here, "src", "index.html"), "utf8").replace(/\{\{(\w+)\}\}/g, (_, name) => names[name]),
);
const files = [
  ["index.html", page],
  [names.style, style],
  [names.script, script],
  [names.icon, icon],
  ["licences.txt", licences()],
];

rmSync(dist, { recursive: true, force: true });
mkdirSync(dist, { recursive: true });
let total = 0;
for (const [name, bytes] of files) {
  const packed = gzipSync(bytes, { level: 9, mtime: 0 });
  total += packed.length;
  writeFileSync(join(dist, name), bytes);
  writeFileSync(join(dist, `${name}.gz`), packed);
}
console.log(`${files.length} files, ${(total / 1024).toFixed(1)} KiB compressed, of at most ${SIZE_MAX / 1024}`);
if (total > SIZE_MAX) {
  console.error("the console is too large");
  process.exit(1);
}
