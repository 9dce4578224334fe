/**
 * `queen tail`: the newest messages of a queue, and those that come.
 *
 * It reads the listings of the log and never pops, so that no lease is taken, no cursor moves and no group is made. Lanes
 * are listed together by time; a lane's messages come in the order of their offsets, which their ids hold.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { ConnectionError, NotFoundError, UnavailableError } from "@queen/client";
import { type Call, type Command, OPTION } from "../command.ts";
import { path } from "../connection.ts";
import { EXIT_CODES } from "../exit-codes.ts";
import type { Column } from "../output/table.ts";
import type { Place } from "./groups.ts";
import type { ListedMessage } from "./messages.ts";

interface TailedMessage extends ListedMessage {
  readonly data: unknown;
}

interface WholeMessage extends ListedMessage {
  readonly traceId: string | null;
  readonly producerSub: string | null;
  readonly payload: unknown;
  readonly consumerGroups: readonly { readonly name: string; readonly consumed: boolean }[];
}

const COLUMNS: readonly Column<TailedMessage>[] = [
  { title: "CREATED", value: ({ createdAt }) => createdAt },
  { title: "PARTITION", value: ({ partition }) => partition },
  { title: "TRANSACTION", value: ({ transactionId }) => transactionId },
  { title: "STATUS", value: ({ status }) => status },
  { title: "DATA", value: ({ data }) => data },
];
const EVER = "1970-01-01T00:00:00Z";
const POLL_EVERY_MS = 1_000;
const PER_PAGE = 200;
// A message of another lane may be committed so much later than its time says, and still be seen.
const LATE_MS = 5_000;
// More than that in one look is more than anybody reads: the newest are shown, and it is said how many were not.
const PER_LOOK_MAX = 500;
const COUNTED_MAX = 10 * PER_LOOK_MAX;
const PAYLOADS_AT_ONCE = 8;

export const tail: Command = {
  name: "tail",
  summary:
    "Show the newest messages of a queue, and with -f those that come, without disturbing any consumer",
  details:
    "It reads the log as `queen messages` does and takes nothing: no lease, no place, no group of its own. So it needs only the " +
    "right to read, and shows a message also when a consumer has it or has finished it. With --group it begins with what " +
    "that group has not finished, the oldest first. With -f it looks once a second; when more than 500 messages came " +
    "since, the newest are shown and it says how many were left out. Of a queue with more than 1,000 partitions it sees " +
    "those that were pushed to last; name a partition to see all of it. The exit code is 4 when there is no message.",
  arguments: [{ name: "queue", summary: "The queue" }],
  options: [
    { flags: "-f, --follow", summary: "Go on with messages that come, until Ctrl-C" },
    OPTION.limit(10, 500, "Messages to begin with,"),
    OPTION.partition,
    { ...OPTION.group, summary: "Begin with what this group has not finished" },
  ],
  examples: [
    { line: "queen tail orders -f", meaning: "Watch a queue" },
    { line: "queen tail orders --group billing -n 5", meaning: "What billing gets next" },
    {
      line: "queen tail orders -n 100 -o ndjson | queen push archive --items",
      meaning: "Copy messages to another queue",
    },
  ],
  async run(call) {
    const log = new Log(call);
    const newest = await log.look();
    const group = call.text("group");
    const limit = call.integer("limit");
    const shown = group === undefined ? newest.slice(0, limit) : await unfinished(call, group, limit);
    await show(call, shown, group);
    if (!call.flag("follow")) return shown.length === 0 ? EXIT_CODES.empty : undefined;
    for (let isAway = false; ; ) {
      await sleep(POLL_EVERY_MS);
      try {
        await showNew(call, await log.look());
        isAway = false;
      } catch (error) {
        if (!(error instanceof ConnectionError || error instanceof UnavailableError)) throw error;
        if (!isAway) call.output.note(`${error.message} Trying again…`);
        isAway = true;
      }
    }
  },
};

async function showNew(call: Call, newestFirst: readonly ListedMessage[]): Promise<void> {
  const left = newestFirst.length - PER_LOOK_MAX;
  if (left > 0) {
    const more = newestFirst.length >= COUNTED_MAX ? " or more" : "";
    call.output.note(`${left}${more} messages are not shown: they came faster than they can be read`);
  }
  await show(call, newestFirst.slice(0, PER_LOOK_MAX), undefined);
}

/** What is new in the log since the last look. */
class Log {
  readonly #call: Call;
  readonly #seen = new Map<string, string>();
  #newestMs = Number.NEGATIVE_INFINITY;

  constructor(call: Call) {
    this.#call = call;
  }

  /** The newest first. The first look ends a little before the newest message, or where enough was found. */
  async look(): Promise<ListedMessage[]> {
    const found: ListedMessage[] = [];
    const isFirst = this.#newestMs === Number.NEGATIVE_INFINITY;
    let newestMs = this.#newestMs;
    for (let page: string | undefined; ; ) {
      const { messages, nextPage } = await this.#page(page);
      if (isFirst && messages[0] !== undefined && page === undefined)
        newestMs = Date.parse(messages[0].createdAt);
      const lowestMs = newestMs - LATE_MS;
      for (const message of messages) {
        if (!isFirst && Date.parse(message.createdAt) < lowestMs) continue;
        if (message.id > (this.#seen.get(message.partitionId) ?? "")) found.push(message);
      }
      const last = messages.at(-1);
      const isOver = last === undefined || Date.parse(last.createdAt) < lowestMs;
      if (nextPage === null || found.length >= COUNTED_MAX) break;
      if (isOver && found.length >= (isFirst ? this.#call.integer("limit") : 0)) break;
      page = nextPage;
    }
    for (const { id, partitionId, createdAt } of found) {
      if (id > (this.#seen.get(partitionId) ?? "")) this.#seen.set(partitionId, id);
      this.#newestMs = Math.max(this.#newestMs, Date.parse(createdAt));
    }
    if (isFirst && found.length === 0) this.#newestMs = 0;
    return found;
  }

  #page(page: string | undefined): Promise<{ messages: ListedMessage[]; nextPage: string | null }> {
    return this.#call.api.request("GET", "/api/v1/messages", {
      query: {
        queue: this.#call.argument("queue"),
        partition: this.#call.text("partition"),
        from: EVER,
        limit: PER_PAGE,
        page,
      },
    });
  }
}

/** What a group gets next, the newest first. */
async function unfinished(call: Call, group: string, limit: number): Promise<ListedMessage[]> {
  const queue = call.argument("queue");
  const places = await call.api.request<Record<string, { partitions: Place[] }>>(
    "GET",
    path`/api/v1/consumer-groups/${group}`,
    { query: { queue } },
  );
  const only = call.text("partition");
  const behind = (places[queue]?.partitions ?? [])
    .filter(({ partition, offsetLag }) => offsetLag > 0 && (only === undefined || partition === only))
    .sort((a, b) => b.timeLagSeconds - a.timeLagSeconds)
    .slice(0, limit);
  const found: ListedMessage[] = [];
  for (const { partition, offsetLag } of behind) {
    const { messages } = await call.api.request<{ messages: ListedMessage[] }>("GET", "/api/v1/messages", {
      query: {
        queue,
        partition,
        from: EVER,
        limit: Math.min(limit, offsetLag),
        offset: Math.max(0, offsetLag - limit),
      },
    });
    found.push(...messages);
  }
  return found.sort((a, b) => compare(b.createdAt, a.createdAt) || compare(b.id, a.id)).slice(-limit);
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** Reads the payloads and prints, the oldest first. */
async function show(
  call: Call,
  newestFirst: readonly ListedMessage[],
  group: string | undefined,
): Promise<void> {
  const messages = [...newestFirst].reverse();
  for (let start = 0; start < messages.length; start += PAYLOADS_AT_ONCE) {
    const some = await Promise.all(
      messages.slice(start, start + PAYLOADS_AT_ONCE).map((message) => whole(call, message)),
    );
    for (const message of some) {
      if (message === undefined) continue;
      if (group !== undefined && isFinished(message, group)) continue;
      await call.output.entry(tailed(message), COLUMNS);
    }
  }
}

const isFinished = (message: WholeMessage, group: string): boolean =>
  message.consumerGroups.some(({ name, consumed }) => name === group && consumed);

/** Undefined: it was removed meanwhile. */
async function whole(
  call: Call,
  { partitionId, transactionId, id }: ListedMessage,
): Promise<WholeMessage | undefined> {
  try {
    return await call.api.request<WholeMessage>(
      "GET",
      path`/api/v1/messages/${partitionId}/${transactionId}`,
      {
        query: { id },
      },
    );
  } catch (error) {
    if (error instanceof NotFoundError) return undefined;
    throw error;
  }
}

function tailed(message: WholeMessage) {
  const { id, queue, partition, partitionId, transactionId, traceId, producerSub, createdAt, status } =
    message;
  return {
    id,
    queue,
    partition,
    partitionId,
    transactionId,
    traceId,
    producerSub,
    createdAt,
    status,
    data: message.payload,
  };
}
