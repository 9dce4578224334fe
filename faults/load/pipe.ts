/**
 * A pipe moves messages to the next queue: ack and push in one transaction, sent again until it is decided. Some
 * transactions come after the lease has run out.
 */
import { nowMs, type Place } from "@queen/test/checker/history";
import { Client, type Work } from "./client.ts";
import { deliveryOf, outliveLease, pop } from "./consumer.ts";
import { PIPE_GROUP, SINK, SOURCE } from "./shape.ts";

export async function pipe(index: number, work: Work): Promise<void> {
  const { shape, enough, over } = work;
  const client = new Client(`pipe-${index}`, 200 + index, work);
  try {
    while (!over.aborted) {
      const got = await pop(client, SOURCE, PIPE_GROUP, work);
      if (!got) continue;
      const { lease } = got;
      const deliveries = got.messages.map((message) => deliveryOf(SOURCE, message));
      if (!enough.aborted && client.random() < shape.lateShare) {
        client.record({ type: "abandoned", atMs: nowMs(), group: PIPE_GROUP, lease, messages: deliveries });
        await outliveLease(client, work);
      }
      const items = deliveries.map(({ partition, value }): Place => ({ queue: SINK, partition, value }));
      const operations = [
        ...got.messages.map(({ transactionId, partitionId, leaseId }) => ({
          type: "ack",
          transactionId,
          partitionId,
          leaseId,
          consumerGroup: PIPE_GROUP,
        })),
        {
          type: "push",
          items: items.map(({ queue, partition, value }) => ({
            queue,
            partition,
            payload: value,
            ...(shape.keyed ? { transactionId: value } : {}),
          })),
        },
      ];
      for (let isDecided = false; !isDecided && !over.aborted; ) {
        const { broker } = client;
        const atMs = nowMs();
        client.record({ type: "push-sent", atMs, broker, keyed: shape.keyed, items });
        const sent = { type: "ack-sent", atMs, group: PIPE_GROUP, lease } as const;
        client.record({ ...sent, status: "completed", messages: deliveries });
        const answer = await client.attempt({
          operation: "transaction",
          method: "POST",
          path: "/api/v1/transaction",
          body: { operations },
        });
        isDecided = answer !== undefined && answer.status < 500;
        const isDone = answer?.status === 200;
        const outcome = isDone ? "stored" : isDecided ? "refused" : "unknown";
        client.record({ type: "push-answered", atMs: nowMs(), broker, items, outcome });
        if (!isDone) continue;
        const acked = { type: "acked", atMs: nowMs(), group: PIPE_GROUP, lease } as const;
        client.record({ ...acked, status: "completed", messages: deliveries });
        work.figures.acked += deliveries.length;
      }
    }
  } finally {
    client.close();
  }
}
