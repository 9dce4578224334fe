/** The table of variables in words, for docs/configuration.md and for `--help`. */
import {
  CONNECTIONS_DEFAULT_MAX,
  GROUPS,
  type Group,
  type Row,
  VARIABLES,
  WITHOUT_EFFECT,
} from "./config-table.ts";

/** Markdown for docs/configuration.md. */
export function configurationPage(): string {
  const lines = [
    "# Configuration",
    "",
    "The broker reads environment variables once, at start, checks every value and names all mistakes",
    "together. An empty variable counts as unset. `queen-broker --print-config` shows the values in use,",
    "without secrets.",
    "",
    `With the defaults a broker opens at most ${CONNECTIONS_DEFAULT_MAX} connections to PostgreSQL, whatever`,
    "the number of cores: SIDECAR_POOL_SIZE + DB_POOL_SIZE + NUM_WORKERS + 1.",
  ];
  for (const group of GROUPS) {
    lines.push("", `## ${group}`, "", "| Variable | Default | Values | Meaning |", "|---|---|---|---|");
    for (const row of rowsOf(group)) {
      lines.push(`| \`${row.name}\` | ${defaultText(row)} | ${valuesText(row)} | ${meaningOf(row)} |`);
    }
  }
  lines.push(
    "",
    "## Variables without effect",
    "",
    "They are accepted, and the broker warns about each that is set.",
    "",
    "| Variables | Reason |",
    "|---|---|",
    ...WITHOUT_EFFECT.map(
      ({ names, reason }) => `| ${names.map((name) => `\`${name}\``).join(", ")} | ${reason} |`,
    ),
  );
  return `${lines.join("\n")}\n`;
}

export function rowsOf(group: Group): readonly Row[] {
  return VARIABLES.filter((row) => row.group === group);
}

export function meaningOf(row: Row): string {
  const file = row.kind === "secret" ? ` ${row.name}_FILE names a file that holds it.` : "";
  return row.meaning + file;
}

export function defaultText(row: Row): string {
  if (typeof row.default === "object") return "of" in row.default ? row.default.text : row.default.unset;
  if (typeof row.default === "boolean") return row.default ? "on" : "off";
  return row.default === "" ? "empty" : String(row.default);
}

function valuesText(row: Row): string {
  if (row.kind === "integer") return `integer, ${row.min} to ${row.max}`;
  if (row.kind === "boolean") return "field" in row ? "on, off" : "true, false";
  if (row.kind === "one-of") return (row.choices ?? []).map((choice) => choice || "empty").join(", ");
  return row.kind;
}
