/**
 * A consumer pops for its group from any broker and acks what it got, some all at once, others in parts and in
 * any order. Now and then it lets a lease run out or gives messages back; poison it fails every time.
 */
import { type AckStatus, nowMs } from "@queen/test/checker/history";
import { isPoison } from "../load/shape.ts";
import { SoakClient } from "./client.ts";
import { deliveryOf, type PoppedMessage } from "./messages.ts";
import { GROUPS, QUEUE } from "./shape.ts";
import type { SoakLoad } from "./soak-load.ts";

const WAIT_MS = 2_000;
const FIRST_CLIENT = 100;

export async function consume(load: SoakLoad, group: string, index: number): Promise<void> {
  const { shape } = load;
  const random = load.random(FIRST_CLIENT + index);
  const client = new SoakClient(load, index);
  const path =
    `/api/v1/pop/queue/${QUEUE}?consumerGroup=${group}&wait=true&timeout=${WAIT_MS}` +
    `&batch=${shape.batch}&partitions=${shape.claims}`;
  while (!load.isOver) {
    const sentAtMs = nowMs();
    const answer = (await client.attempt({ operation: "pop", path, waitMs: WAIT_MS })) as
      | { messages: PoppedMessage[]; leaseId: string }
      | null
      | undefined;
    if (answer === undefined) client.move();
    if (!answer) continue;
    const { messages, leaseId: lease } = answer;
    load.figures.delivered += messages.length;
    const deliveries = messages.map(deliveryOf);
    const leaseMs = shape.leaseSeconds * 1_000;
    load.observe({ type: "popped", atMs: nowMs(), sentAtMs, group, lease, leaseMs, messages: deliveries });
    if (random() < shape.abandonedShare)
      load.observe({ type: "abandoned", atMs: nowMs(), group, lease, messages: deliveries });
    else await ackAll(load, client, group, lease, messages, index % 2 === 0 ? undefined : random);
  }
  client.close();
}

/** With random numbers: in parts and in any order. */
async function ackAll(
  load: SoakLoad,
  client: SoakClient,
  group: string,
  lease: string,
  messages: readonly PoppedMessage[],
  random: (() => number) | undefined,
): Promise<void> {
  const { shape } = load;
  const givesBack = random !== undefined && random() < shape.nackShare;
  const left = random ? messages.toSorted(() => random() - 0.5) : [...messages];
  while (left.length > 0) {
    const part = left.splice(0, random ? 1 + Math.floor(random() * left.length) : left.length);
    const byStatus = new Map<AckStatus, PoppedMessage[]>();
    for (const message of part) {
      const isFailed = group === GROUPS[0] && isPoison(`${message.partition}/${message.data.value}`, shape);
      const status = isFailed ? "failed" : givesBack && random() < 0.1 ? "retry" : "completed";
      byStatus.set(status, [...(byStatus.get(status) ?? []), message]);
    }
    for (const [status, own] of byStatus) await ack(load, client, group, lease, own, status);
  }
}

async function ack(
  load: SoakLoad,
  client: SoakClient,
  group: string,
  lease: string,
  messages: readonly PoppedMessage[],
  status: AckStatus,
): Promise<void> {
  const body = JSON.stringify({
    consumerGroup: group,
    acknowledgments: messages.map(({ transactionId, partitionId, leaseId }) => ({
      transactionId,
      partitionId,
      leaseId,
      status,
      error: "on purpose",
    })),
  });
  const deliveries = messages.map(deliveryOf);
  while (!load.isOver) {
    load.observe({ type: "ack-sent", atMs: nowMs(), group, lease, status, messages: deliveries });
    const results = (await client.attempt({ operation: "ack", path: "/api/v1/ack/batch", body })) as
      | { success: boolean; dlq: boolean }[]
      | undefined;
    if (!results) {
      client.move();
      continue;
    }
    const done = deliveries.filter((_, at) => results[at]!.success);
    const dead = deliveries.filter((_, at) => results[at]!.success && results[at]!.dlq);
    load.observe({ type: "acked", atMs: nowMs(), group, lease, status, messages: done, dead });
    if (status === "completed") load.figures.acked += done.length;
    return;
  }
}
