/** `queen adopt`: brings the database of a Queen 0.15 or 0.16 over. */
import type { Command } from "../command.ts";

export const adopt: Command = {
  name: "adopt",
  summary: "Bring queues, messages, places of groups and dead letters of a Queen 0.15 or 0.16 over",
  details:
    "The source is only read, in one read-only transaction. Messages keep their order, their time, their transactionId and " +
    "their trace; a group goes on with the very message that is its next one there. What a consumer of the source holds " +
    "under a lease is delivered again here. While a queue comes over it is paused here; do not push to it before it is " +
    "done. When the command is cut off, run it again: it goes on where it was, and nothing comes twice. It can be run " +
    "while the source is in use, to bring most of it over; stop its producers and consumers before the last run. In the " +
    "end it compares what is there and here, lane by lane; the exit code is 2 if something differs.",
  options: [
    { flags: "--from <url>", summary: "The database of the other Queen" },
    { flags: "--to <url>", summary: "Our database, instead of DATABASE_URL and the like" },
    { flags: "--dry-run", summary: "Only say what would come over; nothing is written" },
    { flags: "--queue <name>", summary: "Only this queue; may be said again", isRepeatable: true },
  ],
  examples: [
    { line: "queen adopt --from postgres://queen@old-db/queen --dry-run", meaning: "What is there" },
    {
      line: "DATABASE_URL=postgres://queen@db/queen queen adopt --from postgres://queen@old-db/queen",
      meaning: "Bring it over",
    },
    {
      line: "queen adopt --from $OLD --to $NEW -o ndjson > report.ndjson",
      meaning: "With a line for each lane as the report",
    },
  ],
  async run(call) {
    // Loaded by who wants it: the broker's code takes longer to load than most commands to run.
    return (await import("../adopt/run.ts")).runAdoption(call);
  },
};
