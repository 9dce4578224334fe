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
