/** Acks of completed messages as ranges: those of a lane that stand side by side are one. */
import { parseMessageId } from "@queen/protocol";
import type { PoppedMessage } from "./http.ts";

export interface MessageRange {
  readonly ack: { readonly firstId: string; readonly lastId: string; readonly leaseId: string };
  readonly messages: readonly PoppedMessage[];
}

/** Of messages of one lease, in any order. */
export function rangesOf(messages: readonly PoppedMessage[]): MessageRange[] {
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
