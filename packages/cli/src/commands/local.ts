/**
 * `queen serve`, `queen config` and `queen migrate`: what works with the environment and not with a broker. The broker's
 * code is loaded by who wants it: that takes longer than most commands.
 */
import { fileURLToPath } from "node:url";
import type { Command } from "../command.ts";

export const serve: Command = {
  name: "serve",
  summary: "Start a broker, as `npm start` does; this is what `queen` alone does",
  details: "Everything else is set by environment variables: see docs/configuration.md, or queen config.",
  options: [
    { flags: "--port <number>", summary: "Listen on this port, whatever PORT says" },
    { flags: "--host <address>", summary: "Listen on this address, whatever HOST says" },
  ],
  examples: [
    { line: "queen", meaning: "A broker on port 6632 with its own PostgreSQL" },
    {
      line: "DATABASE_URL=postgres://queen@db/queen queen serve --port 7000",
      meaning: "On a PostgreSQL of yours",
    },
  ],
  async run(call) {
    const main = import.meta.resolve("@queen/broker/main");
    const flags = ["port", "host"].flatMap((name) => {
      const value = call.text(name);
      return value === undefined ? [] : [`--${name}`, value];
    });
    // The broker's own program, in this process: signals, exit code and workers are its own.
    process.execArgv.push("--enable-source-maps"); // for the workers; this process has them
    process.argv = [process.argv[0]!, fileURLToPath(main), ...flags];
    await import(main);
    return undefined;
  },
};

export const config: Command = {
  name: "config",
  summary: "Print the configuration that a broker started here would use, without secrets",
  examples: [
    { line: "queen config", meaning: "One NAME=value a line" },
    { line: "queen config -o json | jq -r .PORT", meaning: "One of them" },
  ],
  async run(call) {
    await (await import("../environment.ts")).showConfig(call);
    return undefined;
  },
};

export const migrate: Command = {
  name: "migrate",
  summary: "Bring the schema of the database up to date, as every broker does at its start",
  details:
    "The database is the one of DATABASE_URL, PG_HOST or PGHOST; without them the broker's own PostgreSQL, which is started for " +
    "it and stopped again.",
  options: [{ flags: "--to <url>", summary: "The database, instead of the environment" }],
  examples: [
    {
      line: "queen migrate --to postgres://owner@db/queen",
      meaning: "By a role that may create, before brokers start",
    },
  ],
  async run(call) {
    await (await import("../environment.ts")).migrateDatabase(call);
    return undefined;
  },
};
