/** One message: payload, state per group, traces, and what can be done with it. */
import { useEffect, useState } from "preact/hooks";
import { api, get, post, remove } from "../api.ts";
import { groupName, QUEUE_MODE, queueName } from "../format.ts";
import { ConfirmByName } from "../parts/dialog.tsx";
import { Json } from "../parts/json.tsx";
import { Status } from "../parts/message-table.tsx";
import { attempt } from "../parts/notices.tsx";
import { Allowed, Badge, Head, Problem, Section, Time } from "../parts/pieces.tsx";
import { Table } from "../parts/table.tsx";
import { Timeline } from "../parts/timeline.tsx";
import { go, link, place } from "../router.ts";
import type { MessageAnswer, Trace } from "../types.ts";

interface Found {
  readonly message: MessageAnswer;
  readonly traces: readonly Trace[];
}

export function MessagePage({ parts }: { parts: readonly string[] }) {
  const [partition, transaction] = [parts[1]!, parts[2]!];
  const id = place.value.query.get("id");
  const [found, setFound] = useState<Found>();
  const [error, setError] = useState<string>();
  const [isDeleting, setDeleting] = useState(false);
  const path = ["messages", partition, transaction];

  const load = async (): Promise<void> => {
    try {
      const [message, { traces }] = await Promise.all([
        get<MessageAnswer>(api(path, { id })),
        get<{ traces: readonly Trace[] }>(api(["traces", partition, transaction])),
      ]);
      setFound({ message, traces });
      setError(undefined);
    } catch (failure) {
      setError((failure as Error).message);
    }
  };
  // Another address is another message.
  useEffect(() => void load(), [partition, transaction, id]);

  const message = found?.message;
  const act = (what: "retry" | "dlq", group: string) =>
    attempt(async () => {
      const answer = await post<{ action?: string; messageId: string }>(api([...path, what], { id }), {
        consumerGroup: group,
        ...(what === "dlq" ? { error: "moved by an operator" } : {}),
      });
      await load();
      return what === "dlq" ? "Moved to the dead letters." : `Retry: ${answer.action}.`;
    });
  const copy = () =>
    attempt(async () => {
      const { queue, partition: lane, payload } = message!;
      const [pushed] = await post<{ transaction_id: string; partition_id: string }[]>(api(["push"]), {
        items: [{ queue, partition: lane, payload }],
      });
      if (pushed) go(["messages", pushed.partition_id, pushed.transaction_id]);
      return "A copy was pushed; this is it.";
    });
  return (
    <>
      <Head
        title={transaction}
        above={[
          ["Messages", link(["messages"])],
          ...(message
            ? ([
                [queueName(message.queue), link(["queues", message.queue])],
                [message.partition, link(["queues", message.queue, "lanes", message.partition])],
              ] as const)
            : []),
        ]}
        badges={message && <Status status={message.status} />}
      >
        <button type="button" onClick={() => void load()}>
          Refresh
        </button>
        <Allowed to="produce">
          <button
            type="button"
            disabled={!message || message.payloadError !== null}
            onClick={() => void copy()}
          >
            Push a copy
          </button>
        </Allowed>
        <Allowed to="write">
          <button type="button" class="danger" disabled={!message} onClick={() => setDeleting(true)}>
            Delete
          </button>
        </Allowed>
      </Head>
      <Problem error={error} />
      {message && (
        <>
          <Section title="Payload" note={message.isEncrypted ? "stored encrypted" : undefined}>
            <Problem error={message.payloadError ?? undefined} />
            <Json value={message.payload} label="Payload" />
          </Section>
          <Section title="Per group">
            <Groups message={message} act={act} />
          </Section>
          <Section title="About it">
            <Facts message={message} />
          </Section>
          <Section title="Traces">
            <Timeline traces={found.traces} />
          </Section>
        </>
      )}
      {isDeleting && (
        <ConfirmByName
          title="Delete the message"
          name={transaction}
          action="Delete the message"
          onClose={() => setDeleting(false)}
          onConfirm={async () => {
            const isDone = await attempt(async () => {
              await remove(api(path, { id }));
              return "The message is deleted.";
            });
            if (isDone && message) go(["queues", message.queue, "lanes", message.partition]);
            return isDone;
          }}
        >
          <p>It is taken out of the log for every consumer group. Its dead letters stay.</p>
        </ConfirmByName>
      )}
    </>
  );
}

function Groups(props: {
  readonly message: MessageAnswer;
  readonly act: (what: "retry" | "dlq", group: string) => Promise<boolean>;
}) {
  const { message, act } = props;
  const groups =
    message.consumerGroups.length > 0
      ? message.consumerGroups
      : [{ name: QUEUE_MODE, consumed: false, leaseExpiresAt: null }];
  return (
    <Table label="State per consumer group">
      <thead>
        <tr>
          <th scope="col">Group</th>
          <th scope="col">State</th>
          <th scope="col">
            <span class="unseen">Actions</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {groups.map(({ name, consumed, leaseExpiresAt }) => (
          <tr key={name}>
            <td>{groupName(name)}</td>
            <td>
              {consumed ? (
                <Badge tone="good">finished</Badge>
              ) : leaseExpiresAt ? (
                <>
                  <Badge tone="accent">under a lease</Badge> until <Time at={leaseExpiresAt} />
                </>
              ) : (
                <Badge>waiting</Badge>
              )}
            </td>
            <td class="number">
              <Allowed to="write">
                <button type="button" class="small" onClick={() => void act("retry", name)}>
                  Retry<span class="unseen"> for {groupName(name)}</span>
                </button>{" "}
                {!consumed && (
                  <button type="button" class="small" onClick={() => void act("dlq", name)}>
                    To dead letters<span class="unseen"> of {groupName(name)}</span>
                  </button>
                )}
              </Allowed>
            </td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}

function Facts({ message }: { message: MessageAnswer }) {
  const rows: readonly (readonly [string, preact.ComponentChildren])[] = [
    ["Stored", <Time key="t" at={message.createdAt} />],
    ["Message id", <code key="i">{message.id}</code>],
    ["Producer", message.producerSub],
    ["Trace id", message.traceId],
    ["traceparent", message.traceparent],
    ["Error", message.errorMessage],
    ["Retries", message.retryCount],
  ];
  return (
    <dl class="facts card">
      {rows
        .filter(([, value]) => value !== null && value !== undefined)
        .map(([name, value]) => [<dt key={name}>{name}</dt>, <dd key={`${name} value`}>{value}</dd>])}
    </dl>
  );
}
