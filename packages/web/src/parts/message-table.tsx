/** Messages without their payloads, the newest first. */
import { count, groupName, queueName } from "../format.ts";
import { link } from "../router.ts";
import type { LaneAnswer, MessageRow } from "../types.ts";
import { Badge, Empty, Time, type Tone } from "./pieces.tsx";
import { Table } from "./table.tsx";

const TONES: Readonly<Record<string, Tone>> = {
  completed: "good",
  processing: "accent",
  dead_letter: "bad",
  failed: "bad",
};

export function Status({ status }: { status: string }) {
  return <Badge tone={TONES[status] ?? "plain"}>{status.replaceAll("_", " ")}</Badge>;
}

/** A message's place in its lane is the end of its id. */
const offsetOf = (id: string): number => Number.parseInt(id.slice(-12), 16);

export const messageLink = (
  message: Pick<MessageRow, "partitionId" | "transactionId"> & { id?: string },
): string => link(["messages", message.partitionId, message.transactionId], { id: message.id });

export function MessageTable(props: {
  readonly messages: readonly MessageRow[];
  /** With the places of its groups, where it is known. */
  readonly lane?: LaneAnswer;
  readonly isOfLane?: boolean;
}) {
  const { messages, lane, isOfLane = false } = props;
  if (messages.length === 0) {
    return (
      <div class="card">
        <Empty title="No messages" />
      </div>
    );
  }
  const groupsAt = (id: string): string[] =>
    lane?.consumerGroups.filter(({ offset }) => offset === offsetOf(id)).map(({ name }) => groupName(name)) ??
    [];
  return (
    <Table label="Messages">
      <thead>
        <tr>
          <th scope="col">Transaction</th>
          {!isOfLane && <th scope="col">Queue</th>}
          {!isOfLane && <th scope="col">Lane</th>}
          <th scope="col">Status</th>
          <th scope="col" class="number wide">
            Offset
          </th>
          <th scope="col" class="number">
            Stored
          </th>
        </tr>
      </thead>
      <tbody>
        {messages.map((message) => (
          <tr key={message.id}>
            <td>
              <a href={messageLink(message)} class="mono">
                {message.transactionId}
              </a>
            </td>
            {!isOfLane && (
              <td>
                <a href={link(["queues", message.queue])}>{queueName(message.queue)}</a>
              </td>
            )}
            {!isOfLane && (
              <td>
                <a href={link(["queues", message.queue, "lanes", message.partition])}>{message.partition}</a>
              </td>
            )}
            <td>
              <Status status={message.status} />{" "}
              {groupsAt(message.id).map((name) => (
                <Badge key={name} tone="accent">
                  ← {name}
                </Badge>
              ))}
            </td>
            <td class="number wide">{count(offsetOf(message.id))}</td>
            <td class="number">
              <Time at={message.createdAt} />
            </td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}
