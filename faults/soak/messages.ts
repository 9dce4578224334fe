/** Messages of a soak as they come with a pop. */
import { parseMessageId } from "@queen/protocol";
import type { Delivery } from "@queen/test/checker/history";
import { QUEUE } from "./shape.ts";

export interface PoppedMessage {
  readonly id: string;
  readonly transactionId: string;
  readonly partition: string;
  readonly partitionId: string;
  readonly leaseId: string;
  readonly data: { readonly value: string };
}

export const deliveryOf = ({ id, partition, data }: PoppedMessage): Delivery => ({
  queue: QUEUE,
  partition,
  value: data.value,
  offset: parseMessageId(id)!.offset,
});
