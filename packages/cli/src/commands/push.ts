/** `queen push`: messages from the command line, a file or standard input. */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Call, Command } from "../command.ts";
import { parseExactly } from "../exact-json.ts";
import { ServerError, UsageError } from "../exit-codes.ts";
import { type InputLine, openInput, readLines } from "../input.ts";
import { Progress } from "../output/progress.ts";

interface Item {
  readonly queue: string;
  readonly partition?: string;
  readonly transactionId: string;
  readonly traceId?: string;
  readonly payload: unknown;
}

interface Result {
  readonly status: "queued" | "duplicate" | "buffered" | "failed";
}

// A request holds so many messages or so many bytes of input, whichever comes first.
const BATCH_MESSAGES = 500;
const BATCH_BYTES = 1024 * 1024;
// Who writes the lines may pause between them: what is there is then pushed.
const LINGER_MS = 100;
const PAUSE = Symbol("no line for a while");

export const push: Command = {
  name: "push",
  summary: "Push messages: one payload, or one JSON value a line from a file or standard input",
  details:
    "Requests are sent one after the other, so messages of a partition keep the order of the lines. Every message has a " +
    "transactionId, a new one unless said, so that a request whose answer is lost is sent again without harm. A file " +
    "that is pushed twice is stored once only if its lines bring their own: --id-from, or --items.",
  arguments: [
    { name: "queue", summary: "The queue; made if it does not exist" },
    { name: "payload", summary: "JSON; text that is no JSON is pushed as a string", isOptional: true },
  ],
  options: [
    { flags: "-p, --partition <name>", summary: "The partition; Default without it" },
    { flags: "--id <transactionId>", summary: "The transactionId of the one payload" },
    { flags: "--trace-id <uuid>", summary: "The traceId of every message" },
    { flags: "-f, --file <path>", summary: "Read lines from this file; - is standard input" },
    {
      flags: "--items",
      summary: "Lines are items: {partition, transactionId, payload}; data counts as payload",
    },
    {
      flags: "--partition-from <field>",
      summary: "Lines are payloads; this field names the partition, as in customer.id",
    },
    { flags: "--id-from <field>", summary: "Lines are payloads; this field is the transactionId" },
  ],
  examples: [
    { line: `queen push orders '{"total": 99.90}' --partition customer-42`, meaning: "Push one message" },
    {
      line: "queen push orders --file orders.ndjson --partition-from customer.id --id-from orderId",
      meaning: "Push a file, a lane for each customer; safe to repeat",
    },
    {
      line: "queen tail orders -n 100 -o ndjson | queen push archive --items",
      meaning: "Copy messages to another queue, with their partitions and transactionIds",
    },
  ],
  async run(call) {
    const payload = call.optionalArgument("payload");
    const file = call.text("file");
    if (payload !== undefined && file !== undefined) {
      throw new UsageError("Give a payload or --file, not both");
    }
    if (payload !== undefined) await pushOne(call, payload);
    else await pushLines(call, file);
    return undefined;
  },
};

async function pushOne(call: Call, payload: string): Promise<void> {
  const item = makeItem(call, call.text("id") ?? randomUUID(), call.text("partition"), jsonOrText(payload));
  const [result] = await send(call, [item]);
  await call.output.value(result!);
}

function jsonOrText(text: string): unknown {
  try {
    return parseExactly(text);
  } catch {
    return text;
  }
}

async function pushLines(call: Call, file: string | undefined): Promise<void> {
  if (call.text("id") !== undefined)
    throw new UsageError("--id is for one payload: use --id-from or --items");
  const input = openInput(file);
  const progress = new Progress({
    label: "push",
    unit: input.bytes === undefined ? "messages" : "bytes",
    total: input.bytes,
  });
  const counts = { queued: 0, duplicate: 0, buffered: 0, failed: 0 };
  let batch: Item[] = [];
  let batchFrom = 0;
  const flush = async (upTo: number): Promise<void> => {
    const sent = batch.length;
    if (sent > 0) for (const { status } of await send(call, batch)) counts[status] += 1;
    batch = [];
    batchFrom = upTo;
    if (input.bytes === undefined) progress.add(sent);
    else progress.to(Math.min(upTo, input.bytes));
  };
  let bytesRead = 0;
  try {
    for await (const line of withPauses(readLines(input), () => batch.length > 0)) {
      if (line === PAUSE) {
        await flush(bytesRead);
        continue;
      }
      batch.push(itemOf(call, line, input.name));
      bytesRead = line.bytesRead;
      if (batch.length >= BATCH_MESSAGES || bytesRead - batchFrom >= BATCH_BYTES) await flush(bytesRead);
    }
    await flush(bytesRead);
  } catch (error) {
    progress.clear();
    const done = counts.queued + counts.duplicate + counts.buffered;
    call.output.note(`push: ${done} messages were stored before this; those behind them were not`);
    throw error;
  }
  progress.finish();
  await call.output.value({ queue: call.argument("queue"), messages: sum(counts), ...counts });
  if (counts.failed > 0) throw new ServerError(`${counts.failed} messages were not stored`);
}

/** The lines, and a pause where none came for a while and somebody waits. */
async function* withPauses(
  lines: AsyncGenerator<InputLine>,
  isWaiting: () => boolean,
): AsyncGenerator<InputLine | typeof PAUSE> {
  for (let next = lines.next(); ; ) {
    const end = new AbortController();
    const paused = sleep(LINGER_MS, PAUSE, { signal: end.signal });
    paused.catch(() => {}); // it is not waited for any more
    const come = isWaiting() ? await Promise.race([next, paused]) : await next;
    end.abort();
    if (come === PAUSE) yield PAUSE;
    else if (come.done) return;
    else {
      next = lines.next();
      next.catch(() => {}); // awaited in the next turn
      yield come.value;
    }
  }
}

const sum = (counts: Readonly<Record<string, number>>): number =>
  Object.values(counts).reduce((total, count) => total + count, 0);

function itemOf(call: Call, line: InputLine, input: string): Item {
  const { value, number } = line;
  const at = `line ${number} of ${input}`;
  if (call.flag("items")) {
    const item = value as {
      partition?: unknown;
      transactionId?: unknown;
      payload?: unknown;
      data?: unknown;
    } | null;
    if (typeof item !== "object" || item === null || !("payload" in item || "data" in item)) {
      throw new UsageError(`--items: ${at} is no object with a payload`);
    }
    return makeItem(
      call,
      nameIn(item.transactionId, `transactionId of ${at}`) ?? randomUUID(),
      nameIn(item.partition, `partition of ${at}`) ?? call.text("partition"),
      "payload" in item ? item.payload : item.data,
    );
  }
  const named = (option: string): string | undefined => {
    const field = call.text(option);
    if (field === undefined) return undefined;
    const name = nameIn(fieldOf(value, field), `${field} of ${at}`);
    if (name === undefined) throw new UsageError(`${at} has no ${field}`);
    return name;
  };
  return makeItem(
    call,
    named("idFrom") ?? randomUUID(),
    named("partitionFrom") ?? call.text("partition"),
    value,
  );
}

/** A name may be written as a number; anything else is a mistake in the data. */
function nameIn(value: unknown, what: string): string | undefined {
  if (value === undefined || value === null || value === "") return undefined;
  if (typeof value === "string" || typeof value === "number") return String(value);
  throw new UsageError(`The ${what} is neither a string nor a number`);
}

function fieldOf(value: unknown, path: string): unknown {
  return path
    .split(".")
    .reduce<unknown>(
      (object, name) =>
        typeof object === "object" && object !== null && Object.hasOwn(object, name)
          ? (object as Record<string, unknown>)[name]
          : undefined,
      value,
    );
}

function makeItem(call: Call, transactionId: string, partition: string | undefined, payload: unknown): Item {
  const traceId = call.text("traceId");
  return {
    queue: call.argument("queue"),
    ...(partition === undefined ? {} : { partition }),
    transactionId,
    ...(traceId === undefined ? {} : { traceId }),
    payload,
  };
}

const send = (call: Call, items: readonly Item[]): Promise<Result[]> =>
  call.api.request<Result[]>("POST", "/api/v1/push", { body: { items }, repeatable: true });
