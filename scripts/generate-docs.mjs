/**
 * Some pages of docs/ are printed from tables in the code, so that they cannot say anything else.
 *
 *   node scripts/generate-docs.mjs            writes the pages
 *   node scripts/generate-docs.mjs --check    exits with 1 if a page differs from what would be written
 *
 * It reads the built packages: run `npm run build` first.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { routeTable } from "@queen/broker";
import { ERRORS } from "@queen/protocol";
import { configurationPage } from "../packages/broker/dist/src/config.js";

/** What a client does about each error. */
const WHAT_TO_DO = {
  VALIDATION_FAILED: "Correct the request; the sentence names the item and the field.",
  INVALID_JSON: "Send a body that is valid JSON in UTF-8.",
  NOT_FOUND: "Check the path and the names in it; what it names does not exist.",
  METHOD_NOT_ALLOWED: "Use a method that the path has; the header `Allow` lists them.",
  REQUEST_TIMEOUT: "Send the request again, whole and without long pauses.",
  CONFLICT: "Read the present state and decide again; the same request would meet the same state.",
  BODY_TOO_LARGE: "Send fewer messages per request, or raise `QUEEN_MAX_BODY_BYTES`.",
  OVERLOADED: "Wait as long as `Retry-After` says and try again; if it stays, send less or add capacity.",
  DATABASE_UNAVAILABLE:
    "Wait as long as `Retry-After` says and try again; a push with transaction ids is safe to repeat.",
  SPOOL_UNAVAILABLE:
    "Wait as long as `Retry-After` says and try again; an operator makes room or mends the disk of the spool.",
  SHUTTING_DOWN: "Try again at once on another broker, or on this one when it is back.",
  INTERNAL: "Report it with the broker's log lines of that moment; it is a fault of the broker.",
};

const HEADER = "<!-- Written by scripts/generate-docs.mjs; edit the tables it reads. -->\n\n";
const ROUTES_BEGIN = "<!-- routes: written by scripts/generate-docs.mjs from the route table -->\n";
const ROUTES_END = "<!-- end of routes -->\n";

const PAGES = {
  "configuration.md": HEADER + configurationPage(),
  "errors.md": HEADER + errorsPage(),
  "http-api.md": withRoutes(readOrEmpty(new URL("../docs/http-api.md", import.meta.url))),
};

const check = process.argv.includes("--check");
const folder = new URL("../docs/", import.meta.url);
mkdirSync(folder, { recursive: true });
for (const [name, page] of Object.entries(PAGES)) {
  const file = new URL(name, folder);
  if (page === readOrEmpty(file)) continue;
  if (check) {
    console.error(`docs/${name} is not up to date; run: node scripts/generate-docs.mjs`);
    process.exitCode = 1;
  } else {
    writeFileSync(file, page);
    console.log(`wrote docs/${name}`);
  }
}

function errorsPage() {
  const codes = Object.keys(ERRORS);
  const unexplained = codes.filter((code) => !(code in WHAT_TO_DO));
  const unknown = Object.keys(WHAT_TO_DO).filter((code) => !codes.includes(code));
  if (unexplained.length > 0) throw new Error(`scripts/generate-docs.mjs does not explain ${unexplained}`);
  if (unknown.length > 0) throw new Error(`scripts/generate-docs.mjs explains ${unknown}, which is no error`);
  const rows = codes.map((code) => {
    const { status, retryable } = ERRORS[code];
    return `| \`${code}\` | ${status} | ${retryable ? "yes" : "no"} | ${WHAT_TO_DO[code]} |`;
  });
  return `# Errors

An error answer is \`{"error": "<sentence>", "code": "<CODE>"}\`. The code is stable; the sentence is for
people. Where trying again may help, the same request can be sent again unchanged.

| Code | Status | Try again | What to do |
|---|---|---|---|
${rows.join("\n")}
`;
}

/** The page with its table of routes as the broker serves them. */
function withRoutes(page) {
  const [before, rest] = page.split(ROUTES_BEGIN);
  const after = rest?.split(ROUTES_END)[1];
  if (after === undefined) throw new Error("docs/http-api.md has no marks for the table of routes");
  const rows = routeTable({ timeoutMs: 30_000, batch: 1 }).map(
    ({ method, path, access, summary }) => `| ${method} | \`${path}\` | ${access} | ${summary} |`,
  );
  const table = `| method | path | access | |\n|---|---|---|---|\n${rows.join("\n")}\n`;
  return before + ROUTES_BEGIN + table + ROUTES_END + after;
}

function readOrEmpty(file) {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if (error.code === "ENOENT") return "";
    throw error;
  }
}
