/**
 * A consumer pops for its group and acks what it got: message by message, all at once, or in parts and in any
 * order. Some messages it gives back, poison it fails every time, some leases it lets run out, and some acks
 * come after the lease has run out.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { parseMessageId } from "@queen/protocol";
import { type AckStatus, type Delivery, nowMs } from "@queen/test/checker/history";
import { asRanges, oneByOne, type SentAck } from "@queen/test/support/acks";
import type { PoppedMessage } from "@queen/test/support/http";
import { Client, type Work } from "./client.ts";
import { isPoison, QUEUE } from "./shape.ts";

const WAIT_MS = 1_000;
const BATCH_MAX = 20;
const PARTITIONS_MAX = 3;

export interface Got {
  readonly lease: string;
  readonly messages: readonly PoppedMessage[];
}

export const deliveryOf = (queue: string, message: PoppedMessage): Delivery => ({
  queue,
  partition: message.partition,
  value: message.data as string,
  offset: parseMessageId(message.id)!.offset,
});

/** A pop that is written down; undefined: nothing came. */
export async function pop(
  client: Client,
  queue: string,
  group: string,
  work: Work,
): Promise<Got | undefined> {
  const query = new URLSearchParams({
    consumerGroup: group,
    wait: "true",
    timeout: String(WAIT_MS),
    batch: String(1 + Math.floor(client.random() * BATCH_MAX)),
    partitions: String(1 + Math.floor(client.random() * PARTITIONS_MAX)),
  });
  const sentAtMs = nowMs();
  const answer = await client.attempt({
    operation: "pop",
    method: "GET",
    path: `/api/v1/pop/queue/${queue}?${query}`,
    waitMs: WAIT_MS,
  });
  if (answer?.status !== 200) return undefined;
  const { messages, leaseId } = answer.json as { messages: PoppedMessage[]; leaseId: string };
  client.record({
    type: "popped",
    atMs: nowMs(),
    sentAtMs,
    group,
    lease: leaseId,
    leaseMs: work.shape.leaseSeconds * 1_000,
    messages: messages.map((message) => deliveryOf(queue, message)),
  });
  work.figures.delivered += messages.length;
  return { lease: leaseId, messages };
}

/** Waits until the lease has run out, or the load is over. */
export async function outliveLease(client: Client, { shape, over }: Work): Promise<void> {
  const ms = shape.leaseSeconds * 1_000 + client.random() * 1_000;
  await sleep(ms, undefined, { signal: over }).catch(() => undefined);
}

export async function consume(group: string, index: number, work: Work): Promise<void> {
  const { shape, enough, over } = work;
  const client = new Client(`consumer-${group}-${index}`, 100 + index, work);
  try {
    while (!over.aborted) {
      const got = await pop(client, QUEUE, group, work);
      if (!got) continue;
      const draw = client.random();
      if (!enough.aborted && draw < shape.abandonedShare + shape.lateShare) {
        const messages = got.messages.map((message) => deliveryOf(QUEUE, message));
        client.record({ type: "abandoned", atMs: nowMs(), group, lease: got.lease, messages });
        if (draw < shape.abandonedShare) continue;
        await outliveLease(client, work);
      }
      await ackAll(client, group, got, index, work);
    }
  } finally {
    client.close();
  }
}

async function ackAll(client: Client, group: string, got: Got, index: number, work: Work): Promise<void> {
  const { shape } = work;
  const statusOf = (message: PoppedMessage): AckStatus => {
    if (group === shape.groups[0] && isPoison(message.data as string, shape)) return "failed";
    return client.random() < shape.nackShare ? "retry" : "completed";
  };
  // One consumer of three acks message by message, one in any order and in parts, one all at once and as ranges.
  const kind = index % 3;
  let left = kind === 1 ? got.messages.toSorted(() => client.random() - 0.5) : [...got.messages];
  while (left.length > 0) {
    const size = kind === 0 ? 1 : kind === 1 ? 1 + Math.floor(client.random() * left.length) : left.length;
    const part = left.splice(0, size);
    const byStatus = new Map<AckStatus, PoppedMessage[]>();
    for (const message of part) {
      const status = statusOf(message);
      byStatus.set(status, [...(byStatus.get(status) ?? []), message]);
    }
    for (const [status, messages] of byStatus) {
      const acks = kind === 2 && status === "completed" ? asRanges(messages) : oneByOne(messages, status);
      await ack(client, group, got.lease, acks, status, work);
    }
    // What follows in the lane of a message that was given back is with others now; half of the time it is
    // acked all the same.
    const given = part.filter((message) => !byStatus.get("completed")?.includes(message));
    if (client.random() < 0.5)
      left = left.filter((message) => !given.some(({ partition }) => partition === message.partition));
  }
}

async function ack(
  client: Client,
  group: string,
  lease: string,
  acks: readonly SentAck[],
  status: AckStatus,
  { over, figures }: Work,
): Promise<void> {
  const body = { consumerGroup: group, acknowledgments: acks.map(({ ack }) => ack) };
  const deliveriesOf = (acks: readonly SentAck[]): Delivery[] =>
    acks.flatMap(({ messages }) => messages.map((message) => deliveryOf(QUEUE, message)));
  while (!over.aborted) {
    client.record({ type: "ack-sent", atMs: nowMs(), group, lease, status, messages: deliveriesOf(acks) });
    const answer = await client.attempt({
      operation: "ack",
      method: "POST",
      path: "/api/v1/ack/batch",
      body,
    });
    if (!answer || answer.status >= 500) continue;
    if (answer.status !== 200) return;
    const results = answer.json as { success: boolean; dlq: boolean }[];
    const done = deliveriesOf(acks.filter((_, index) => results[index]!.success));
    const dead = deliveriesOf(acks.filter((_, index) => results[index]!.success && results[index]!.dlq));
    if (done.length === 0) return;
    client.record({ type: "acked", atMs: nowMs(), group, lease, status, messages: done, dead });
    figures.acked += done.length;
    return;
  }
}
