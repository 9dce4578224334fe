/** An item of a push as JSON: what `JSON.stringify` gives, in less time, because neighbours are mostly of one lane. */
import type { PushItem } from "./data-plane.ts";

let lastQueue: string | undefined;
let lastPartition: string | undefined;
let lastHead = "";

export function pushJson({
  queue,
  partition,
  transactionId,
  traceId,
  traceparent,
  payload,
}: PushItem): string {
  if (queue !== lastQueue || partition !== lastPartition) {
    lastQueue = queue;
    lastPartition = partition;
    lastHead = `{"queue":${JSON.stringify(queue)},"partition":${JSON.stringify(partition)},"transactionId":`;
  }
  let json = lastHead + JSON.stringify(transactionId);
  if (traceId !== undefined) json += `,"traceId":${JSON.stringify(traceId)}`;
  if (traceparent !== undefined) json += `,"traceparent":${JSON.stringify(traceparent)}`;
  // A function has no JSON, and what has none is left out.
  const payloadJson = JSON.stringify(payload) as string | undefined;
  if (payloadJson !== undefined) json += `,"payload":${payloadJson}`;
  return `${json}}`;
}
