/**
 * Some pages of docs/, and the client's types of the control plane, are printed from tables in the code, so
 * that they cannot say anything else.
 *
 *   node scripts/generate-docs.mjs            writes the pages
 *   node scripts/generate-docs.mjs --check    exits with 1 if a page differs from what would be written
 *
 * It reads the built packages: run `npm run build` first.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { routeTable } from "@queen/broker";
import { ERRORS } from "@queen/protocol";
import { ACCESSES, MAY, ROLES } from "../packages/broker/dist/src/access/roles.js";
import { configurationPage } from "../packages/broker/dist/src/config-page.js";
import { manualPage } from "../packages/cli/dist/src/manual.js";
import { licencesPage } from "./licences.mjs";
import { routeTypes } from "./route-types.mjs";

/** What a client does about each error. */
const WHAT_TO_DO = {
  VALIDATION_FAILED: "Correct the request; the sentence names the item and the field.",
  INVALID_JSON: "Send a body that is valid JSON in UTF-8.",
  UNAUTHENTICATED:
    "Send a valid token or API key as `Authorization: Bearer …`; the sentence says what is wrong.",
  FORBIDDEN: "Use a credential whose role and queue patterns allow it; see docs/security.md.",
  NOT_FOUND: "Check the path and the names in it; what it names does not exist.",
  METHOD_NOT_ALLOWED: "Use a method that the path has; the header `Allow` lists them.",
  REQUEST_TIMEOUT: "Send the request again, whole and without long pauses.",
  CONFLICT: "Read the present state and decide again; the same request would meet the same state.",
  BODY_TOO_LARGE: "Send fewer messages per request, or raise `QUEEN_MAX_BODY_BYTES`.",
  UNSUPPORTED_ENCODING: "Send the body as it is, without `Content-Encoding`.",
  MAINTENANCE:
    "Push maintenance is on: wait as long as `Retry-After` says and try again; operators switch it off when they are done.",
  QUEUE_FULL:
    "Wait as long as `Retry-After` says and try again; if it stays, add consumers or raise the queue's `maxSize`.",
  TOO_MANY_REQUESTS:
    "Wait as long as `Retry-After` says and try again; if it stays, send less or raise the limit.",
  OVERLOADED: "Wait as long as `Retry-After` says and try again; if it stays, send less or add capacity.",
  ENCRYPTION_KEY_MISSING:
    "Give this broker the key that the sentence names, see [encryption.md](encryption.md); until then another " +
    "broker may have it, so trying again may help. Nothing was lost.",
  DATABASE_UNAVAILABLE:
    "Wait as long as `Retry-After` says and try again; a push with transaction ids is safe to repeat.",
  IDENTITY_PROVIDER_UNAVAILABLE:
    "Wait as long as `Retry-After` says and try again; the broker cannot fetch the keys that verify tokens.",
  SPOOL_UNAVAILABLE:
    "Wait as long as `Retry-After` says and try again; an operator makes room or mends the disk of the spool.",
  SHUTTING_DOWN: "Try again at once on another broker, or on this one when it is back.",
  MESSAGE_DAMAGED:
    "Find out who changes the database's tables; move the message to the dead letters, so that its partition goes on.",
  INTERNAL: "Report it with the broker's log lines of that moment; it is a fault of the broker.",
};

const HEADER = "<!-- Written by scripts/generate-docs.mjs; edit the tables it reads. -->\n\n";
const ROUTES = routeTable({ timeoutMs: 30_000, batch: 1 });
const PAGES = {
  "docs/cli.md": HEADER + manualPage(),
  "docs/configuration.md": HEADER + configurationPage(),
  "docs/errors.md": HEADER + errorsPage(),
  "docs/licences.md": HEADER + licencesPage(),
  "docs/http-api.md": withTable("http-api.md", "routes", "from the route table", routesTable()),
  "docs/security.md": withTable("security.md", "roles", "from the table of roles", rolesTable()),
  "packages/client/src/admin/routes.ts": routeTypes(ROUTES),
};

const check = process.argv.includes("--check");
const root = new URL("../", import.meta.url);
for (const [name, page] of Object.entries(PAGES)) {
  const file = new URL(name, root);
  if (page === readOrEmpty(file)) continue;
  if (check) {
    console.error(`${name} is not up to date; run: node scripts/generate-docs.mjs`);
    process.exitCode = 1;
  } else {
    mkdirSync(new URL(".", file), { recursive: true });
    writeFileSync(file, page);
    console.log(`wrote ${name}`);
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

/** A page whose table between two marks is written here, and all else by hand. */
function withTable(name, what, source, table) {
  const begin = `<!-- ${what}: written by scripts/generate-docs.mjs ${source} -->\n`;
  const end = `<!-- end of ${what} -->\n`;
  const [before, rest] = readOrEmpty(new URL(`../docs/${name}`, import.meta.url)).split(begin);
  const after = rest?.split(end)[1];
  if (after === undefined) throw new Error(`docs/${name} has no marks for the table of ${what}`);
  return before + begin + table + end + after;
}

function routesTable() {
  const rows = ROUTES.map(
    ({ method, path, access, summary }) => `| ${method} | \`${path}\` | ${access} | ${summary} |`,
  );
  return `| method | path | access | |\n|---|---|---|---|\n${rows.join("\n")}\n`;
}

function rolesTable() {
  const accesses = ACCESSES.filter((access) => access !== "open");
  const rows = ROLES.map((role) => {
    const cells = accesses.map((access) => (MAY[role].includes(access) ? "yes" : ""));
    return `| \`${role}\` | ${cells.join(" | ")} |`;
  });
  return `| role | ${accesses.join(" | ")} |\n|---|${"---|".repeat(accesses.length)}\n${rows.join("\n")}\n`;
}

function readOrEmpty(file) {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if (error.code === "ENOENT") return "";
    throw error;
  }
}
