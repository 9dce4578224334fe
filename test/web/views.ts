/** Every view of the page: its address, and a text that it shows when its data is there. */
import type { HttpClient } from "../support/http.ts";

export interface View {
  readonly name: string;
  readonly address: string;
  readonly shows: string;
}

export const QUEUE = "shop.orders";
export const LANE = "customer-1";
export const GROUP = "billing";
export const ERROR = "SMTP 550: mailbox unavailable";

/** A queue with everything in it that views show: groups, leases, retries, dead letters, traces, a pause. */
export async function fill(client: HttpClient): Promise<{ partitionId: string; transactionId: string }> {
  await client.configure(QUEUE, { leaseTime: 60, retryLimit: 0, retryDelay: 100, deadLetterQueue: true });
  await client.push(
    Array.from({ length: 60 }, (_, n) => ({
      queue: QUEUE,
      partition: `customer-${(n % 12) + 1}`,
      transactionId: `order-${n}`,
      payload: { order: n, total: n * 1.5, customer: { name: "Ada Lovelace", tags: ["eu", "new"] } },
    })),
  );
  const popped = await client.pop(QUEUE, { batch: 60, partitions: 12, consumerGroup: GROUP });
  const [failed, ...others] = popped.messages;
  const buried = others.slice(0, 3);
  await client.ackMessages([failed!, ...buried], "dlq", ERROR);
  await client.ackMessages(others.slice(3, 30));
  const { partitionId, transactionId } = others[5]!;
  for (const step of ["validated", "charged"]) {
    await client.request("POST", "/api/v1/traces", {
      partitionId,
      transactionId,
      consumerGroup: GROUP,
      eventType: "step",
      traceNames: ["checkout-1"],
      data: { step },
    });
  }
  await client.pop(QUEUE, { batch: 5, consumerGroup: "shipping" });
  await client.push(Array.from({ length: 20 }, (_, n) => ({ queue: "mail.outgoing", payload: { mail: n } })));
  await client.request("POST", "/api/v1/queues/mail.outgoing/pause", { reason: "the provider is down" });
  return { partitionId, transactionId };
}

export const viewsOf = ({ partitionId, transactionId }: Awaited<ReturnType<typeof fill>>): View[] => [
  { name: "overview", address: "overview", shows: "Furthest behind" },
  { name: "queues", address: "queues", shows: "mail.outgoing" },
  { name: "queue", address: `queues/${QUEUE}`, shows: "customer-12" },
  { name: "lane", address: `queues/${QUEUE}/lanes/${LANE}`, shows: "Latest messages" },
  { name: "messages", address: `messages?queue=${QUEUE}`, shows: "Stored" },
  { name: "message", address: `messages/${partitionId}/${transactionId}`, shows: "Ada Lovelace" },
  { name: "groups", address: "groups", shows: "shipping" },
  { name: "group", address: `groups/${GROUP}/${QUEUE}`, shows: "Lanes of the group" },
  { name: "dead-letters", address: "dead-letters", shows: ERROR },
  { name: "traces", address: "traces", shows: "checkout-1" },
  { name: "trace", address: "traces/checkout-1", shows: "validated" },
  { name: "system", address: "system", shows: "What the doctor says" },
  { name: "maintenance", address: "maintenance", shows: "Pop maintenance" },
  { name: "try-it", address: "try", shows: "Push" },
];
