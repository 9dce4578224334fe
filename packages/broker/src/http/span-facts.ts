/** What the spans of the data plane say about the messages that an operation was about. */
import type { AckOrRange } from "../operations/ack-body.ts";
import type { PushItem } from "../operations/push-body.ts";
import { traceparentOf } from "../operations/segment.ts";
import type { PopOutcome } from "../popping/pop.ts";
import type { AckResult } from "../settling/settler.ts";
import type { OperationSpan, Place } from "../tracing.ts";

/** Links to what items carry that they brought themselves. */
export function describePush(span: OperationSpan, items: readonly PushItem[]): void {
  span.about(items.length, items);
  const carried = items.map(({ fragment }) => traceparentOf(fragment));
  span.link(carried.filter((traceparent) => traceparent !== span.traceparent));
}

export function describePop(
  span: OperationSpan,
  wanted: {
    readonly queues: readonly string[];
    readonly partition: string | undefined;
    readonly group: string;
  },
  outcome: PopOutcome,
  messages: number,
): void {
  const places: readonly Place[] =
    outcome.status === "empty"
      ? wanted.queues.map((queue) => ({ queue, partition: wanted.partition }))
      : outcome.taken.map(({ groupLane: { lane } }) => ({ queue: lane.queue.name, partition: lane.name }));
  span.about(messages, places, wanted.group);
}

export function describeAck(
  span: OperationSpan,
  items: readonly AckOrRange[],
  results: readonly AckResult[],
): void {
  const groups = new Set(items.map(({ group }) => group));
  span.about(
    items.reduce((sum, { messages }) => sum + messages, 0),
    results.flatMap(({ lane }) => (lane ? { queue: lane.queue.name, partition: lane.name } : [])),
    groups.size === 1 ? items[0]!.group : undefined,
  );
  span.link(results.flatMap(({ traceparents = [] }) => traceparents));
}
