/**
 * Bundles the web page into the broker's package, packages/broker/dist/page: index.html, and beside it assets/ with
 * files that are named after their content. Nothing is done while no source is newer than the last build.
 *
 *   node packages/web/build.mjs            builds
 *   node packages/web/build.mjs --sizes    builds, and says how large it is
 */
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { basename, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const HERE = fileURLToPath(new URL("./", import.meta.url));
const OUT = fileURLToPath(new URL("../broker/dist/page/", import.meta.url));
const INDEX = join(OUT, "index.html");
const showsSizes = process.argv.includes("--sizes");

const sources = [
  join(HERE, "build.mjs"),
  ...readdirSync(join(HERE, "src"), { recursive: true }).map((name) => join(HERE, "src", name)),
];
const changedMs = Math.max(...sources.map((path) => statSync(path).mtimeMs));
if (showsSizes || !existsSync(INDEX) || statSync(INDEX).mtimeMs < changedMs) await bundle();

async function bundle() {
  // Into a folder beside it first: a broker that starts meanwhile reads the old page or the new one.
  const next = `${OUT.slice(0, -1)}.${process.pid}`;
  const { metafile } = await build({
    entryPoints: { main: join(HERE, "src/main.tsx"), icon: join(HERE, "src/icon.svg") },
    outdir: join(next, "assets"),
    entryNames: "[name]-[hash]",
    chunkNames: "[name]-[hash]",
    assetNames: "[name]-[hash]",
    bundle: true,
    splitting: true,
    format: "esm",
    target: "es2022",
    minify: true,
    legalComments: "none",
    jsx: "automatic",
    jsxImportSource: "preact",
    loader: { ".svg": "copy" },
    metafile: true,
    absWorkingDir: HERE,
  });
  const built = Object.keys(metafile.outputs).map((path) => join(HERE, path));
  const named = (pattern) => basename(built.find((path) => pattern.test(basename(path))));
  const html = readFileSync(join(HERE, "src/index.html"), "utf8")
    .replace("main.js", named(/^main-.*\.js$/))
    .replace("main.css", named(/^main-.*\.css$/))
    .replace("icon.svg", named(/^icon-.*\.svg$/));
  writeFileSync(join(next, "index.html"), html);
  rmSync(OUT, { recursive: true, force: true });
  renameSync(next, OUT);
  if (showsSizes) printSizes(built.map((path) => join(OUT, relative(next, path))));
}

function printSizes(files) {
  const rows = files.map((path) => ({ path, bytes: gzipSync(readFileSync(path), { level: 9 }).length }));
  rows.sort((a, b) => b.bytes - a.bytes);
  for (const { path, bytes } of rows)
    console.log(`${(bytes / 1024).toFixed(1).padStart(7)} KB  ${basename(path)}`);
  const total = rows.reduce((sum, { bytes }) => sum + bytes, 0);
  console.log(`${(total / 1024).toFixed(1).padStart(7)} KB  all, gzip`);
}
