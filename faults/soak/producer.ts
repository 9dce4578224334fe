/**
 * A producer pushes one request after the other to its broker, and sends each again until it is answered. Of its
 * messages to a lane it knows the number; the transactionId is made of it.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { nowMs, type Place, type PushOutcome } from "@queen/test/checker/history";
import { SoakClient } from "./client.ts";
import { HOT_PARTITION, QUEUE } from "./shape.ts";
import type { SoakLoad } from "./soak-load.ts";

const LOOK_AGAIN_MS = 5;
// A producer that an outage has held up by more does not make up for it.
const LATE_MS_MAX = 1_000;

export async function produce(load: SoakLoad, index: number): Promise<void> {
  const { shape } = load;
  const random = load.random(index);
  const client = new SoakClient(load, index);
  const source = `s${index}`;
  const numbers = new Map<string, number>();
  const padding = "x".repeat(shape.payloadBytes);
  const items = (): Place[] => {
    const all: Place[] = [];
    while (all.length < shape.itemsPerPush) {
      const partition =
        random() < shape.hotShare ? HOT_PARTITION : `p${Math.floor(random() * shape.partitions)}`;
      let number = numbers.get(partition) ?? 0;
      for (let count = 0; count < shape.itemsPerLane; count++)
        all.push({ queue: QUEUE, partition, value: `${source}:${number++}` });
      numbers.set(partition, number);
    }
    return all;
  };
  let dueMs = nowMs();
  while (!load.isEnough) {
    if (load.ratePerSecond === null) {
      dueMs = nowMs();
      if (load.isAhead) {
        await sleep(LOOK_AGAIN_MS);
        continue;
      }
    } else {
      dueMs += (shape.producers * shape.itemsPerPush * 1_000) / load.ratePerSecond;
      if (dueMs < nowMs() - LATE_MS_MAX) dueMs = nowMs();
      if (dueMs > nowMs()) await sleep(dueMs - nowMs());
    }
    const places = items();
    const body = JSON.stringify({
      items: places.map(({ queue, partition, value }) => ({
        queue,
        partition,
        transactionId: `${partition}-${value}`,
        payload: { value, padding },
      })),
    });
    while (!(await pushOnce(load, client, places, body)) && !load.isOver);
  }
  client.close();
}

/** Whether all of it was answered. */
async function pushOnce(
  load: SoakLoad,
  client: SoakClient,
  items: readonly Place[],
  body: string,
): Promise<boolean> {
  const { broker } = client;
  load.observe({ type: "push-sent", atMs: nowMs(), broker, keyed: true, items });
  const results = (await client.attempt({ operation: "push", path: "/api/v1/push", body })) as
    | { status: string }[]
    | undefined;
  const outcomes = items.map((_, index) => outcomeOf(results?.[index]?.status));
  for (const outcome of new Set(outcomes)) {
    const own = items.filter((_, index) => outcomes[index] === outcome);
    load.observe({ type: "push-answered", atMs: nowMs(), broker, items: own, outcome });
  }
  if (outcomes.includes("unknown")) return false;
  load.figures.stored += items.length;
  load.figures.buffered += outcomes.filter((outcome) => outcome === "buffered").length;
  return true;
}

function outcomeOf(status: string | undefined): PushOutcome {
  if (status === "queued" || status === "duplicate") return "stored";
  return status === "buffered" ? "buffered" : "unknown";
}
