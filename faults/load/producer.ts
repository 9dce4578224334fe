/**
 * A producer pushes at its pace, each message to a partition by chance and a part of them to the hot one, and
 * sends a push again until it is answered. Its messages' values are its name and a number that counts up.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { nowMs, type Place, type PushOutcome } from "@queen/test/checker/history";
import type { HttpAnswer } from "@queen/test/support/http";
import { Client, type Work } from "./client.ts";
import { HOT_PARTITION } from "./shape.ts";

const HOT_SHARE = 0.3;

export async function produce(queue: string, name: string, index: number, work: Work): Promise<void> {
  const { shape, enough, over } = work;
  const client = new Client(name, index, work);
  const everyMs = 1_000 / shape.pushesPerSecond;
  let next = 0;
  try {
    while (!enough.aborted) {
      const startedMs = nowMs();
      const items = Array.from(
        { length: shape.itemsPerPush },
        (): Place => ({
          queue,
          partition:
            client.random() < HOT_SHARE
              ? HOT_PARTITION
              : `p${Math.floor(client.random() * shape.partitions)}`,
          value: `${name}:${next++}`,
        }),
      );
      const isHedged = shape.keyed && work.urls.length > 1 && client.random() < shape.hedgedShare;
      const other = work.urls.find((url) => url !== client.broker);
      const second = isHedged && other ? pushOnce(client, items, work, other) : undefined;
      while (!(await pushOnce(client, items, work, client.broker)) && !over.aborted);
      await second;
      await sleep(Math.max(0, everyMs * (0.5 + client.random()) - (nowMs() - startedMs)));
    }
  } finally {
    client.close();
  }
}

/** Whether it was answered. */
async function pushOnce(
  client: Client,
  items: readonly Place[],
  { shape: { keyed }, figures }: Work,
  broker: string,
): Promise<boolean> {
  client.record({ type: "push-sent", atMs: nowMs(), broker, keyed, items });
  const body = {
    items: items.map(({ queue, partition, value }) => ({
      queue,
      partition,
      payload: value,
      ...(keyed ? { transactionId: value } : {}),
    })),
  };
  const answer = await client.attempt(
    { operation: "push", method: "POST", path: "/api/v1/push", body },
    broker,
  );
  const outcomes = items.map((_, index) => outcomeOf(answer, index));
  for (const outcome of new Set(outcomes)) {
    const own = items.filter((_, index) => outcomes[index] === outcome);
    client.record({ type: "push-answered", atMs: nowMs(), broker, items: own, outcome });
    if (outcome === "stored" || outcome === "buffered") figures.stored += own.length;
  }
  return outcomes.every((outcome) => outcome !== "unknown");
}

export function outcomeOf(answer: HttpAnswer | undefined, index: number): PushOutcome {
  if (!answer || answer.status >= 500) return "unknown";
  if (answer.status >= 400) return "refused";
  const { status } = (answer.json as { status: string }[])[index]!;
  if (status === "queued" || status === "duplicate") return "stored";
  return status === "buffered" ? "buffered" : "unknown";
}
