/** Small questions to the server itself. */
import type { Statement } from "../session.ts";

export const readTimestamp: Statement<string> = {
  name: "queen_read_timestamp",
  text: "select $1::timestamptz::text",
  parameters: ["text"],
  read: (row) => row.text(0),
};

export const ping: Statement<number> = {
  name: "queen_ping",
  text: "select 1",
  parameters: [],
  read: (row) => row.int4(0),
};

/** Of these server processes, those that are there and do not idle, or do not tell. */
export const readBusyProcesses: Statement<number> = {
  name: "queen_read_busy_processes",
  text: "select pid from pg_stat_activity where pid = any($1) and state is distinct from 'idle'",
  parameters: ["int4[]"],
  read: (row) => row.int4(0),
};
