/** Acknowledgments of messages that a load popped: one by one, or as ranges. */
import { parseMessageId } from "@queen/protocol";
import type { PoppedMessage } from "./http.ts";

/** An acknowledgment as it is sent, and what it is about. */
export interface SentAck {
  readonly ack: object;
  readonly messages: readonly PoppedMessage[];
}

export const oneByOne = (messages: readonly PoppedMessage[], status: string): SentAck[] =>
  messages.map((message) => {
    const { transactionId, partitionId, leaseId } = message;
    return { ack: { transactionId, partitionId, leaseId, status, error: "on purpose" }, messages: [message] };
  });

/** Completes messages of one lease, given in any order: those of a lane that stand side by side are one range. */
export function asRanges(messages: readonly PoppedMessage[]): SentAck[] {
  const runs: { message: PoppedMessage; partition: number; offset: number }[][] = [];
  const placed = messages.map((message) => ({ message, ...parseMessageId(message.id)! }));
  placed.sort((one, other) => one.partition - other.partition || one.offset - other.offset);
  for (const each of placed) {
    const last = runs.at(-1)?.at(-1);
    if (last?.partition === each.partition && last.offset + 1 === each.offset) runs.at(-1)!.push(each);
    else runs.push([each]);
  }
  return runs.map((run) => ({
    ack: { firstId: run[0]!.message.id, lastId: run.at(-1)!.message.id, leaseId: run[0]!.message.leaseId },
    messages: run.map(({ message }) => message),
  }));
}
