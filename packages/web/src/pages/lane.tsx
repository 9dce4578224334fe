/** A lane: its log with the place of every group on it, why it moves or not, and its latest messages. */
import { useState } from "preact/hooks";
import { api, post, remove } from "../api.ts";
import { count, duration, groupName, plural, QUEUE_MODE, queueName, secondsSince } from "../format.ts";
import { useLive } from "../live.ts";
import { ConfirmByName } from "../parts/dialog.tsx";
import { LaneDrawing } from "../parts/lane-drawing.tsx";
import { MessageTable } from "../parts/message-table.tsx";
import { attempt } from "../parts/notices.tsx";
import { PauseDialog } from "../parts/pauses.tsx";
import { Allowed, Badge, Head, Problem, Section, Time, type Tone } from "../parts/pieces.tsx";
import { SeekDialog } from "../parts/seek.tsx";
import { link, place } from "../router.ts";
import type { Explanation, LaneAnswer, MessageRow, Pause } from "../types.ts";

export function LanePage({ parts }: { parts: readonly string[] }) {
  const queue = parts[1]!;
  const name = parts[3]!;
  const lane = useLive<LaneAnswer>(api(["queues", queue, "partitions", name]));
  const pauses = useLive<{ pauses: readonly Pause[] }>(api(["queues", queue, "pauses"]));
  const messages = useLive<readonly MessageRow[]>(
    api(["status", "queues", queue, "messages"], { partition: name, limit: 25 }),
  );
  const groups = lane.body?.consumerGroups ?? [];
  const asked = place.value.query.get("group");
  const group = groups.find((each) => each.name === asked)?.name ?? mostBehind(groups) ?? QUEUE_MODE;
  const [open, setOpen] = useState<"pause" | "clear" | "seek">();
  const close = (): void => setOpen(undefined);
  const own = pauses.body?.pauses.find((each) => each.partition === name && each.consumerGroup === null);
  const resume = () =>
    attempt(async () => {
      await post(api(["queues", queue, "resume"]), { partition: name });
      return `${name} delivers again.`;
    });
  return (
    <>
      <Head
        title={name}
        above={[
          ["Queues", link(["queues"])],
          [queueName(queue), link(["queues", queue])],
        ]}
        badges={own && <Badge tone="warn">paused</Badge>}
      >
        <Allowed to="write">
          {own ? (
            <button type="button" onClick={() => void resume()}>
              Resume
            </button>
          ) : (
            <button type="button" onClick={() => setOpen("pause")}>
              Pause
            </button>
          )}
          <button type="button" disabled={groups.length === 0} onClick={() => setOpen("seek")}>
            Seek
          </button>
        </Allowed>
        <Allowed to="admin">
          <button type="button" class="danger" onClick={() => setOpen("clear")}>
            Clear
          </button>
        </Allowed>
      </Head>
      <Problem error={lane.error} />
      {lane.body && (
        <>
          <LaneDrawing lane={lane.body} chosen={group} linkTo={(to) => link(parts, { group: to })} />
          <Why queue={queue} lane={name} group={group} />
          <Section
            title="Latest messages"
            actions={<a href={link(["messages"], { queue, partition: name })}>All messages</a>}
          >
            <MessageTable messages={messages.body ?? []} isOfLane lane={lane.body} />
          </Section>
        </>
      )}
      {open === "pause" && <PauseDialog queue={queue} partition={name} groups={groups} onClose={close} />}
      {open === "seek" && <SeekDialog queue={queue} group={group} partition={name} onClose={close} />}
      {open === "clear" && <Clear queue={queue} name={name} onClose={close} />}
    </>
  );
}

const mostBehind = (groups: LaneAnswer["consumerGroups"]): string | undefined =>
  groups.toSorted((a, b) => b.pending - a.pending)[0]?.name;

const TONES: Readonly<Record<string, Tone>> = {
  ready: "good",
  empty: "plain",
  leased: "accent",
  exhausted: "bad",
};

/** The answer of `explain`, in words. */
function Why({ queue, lane, group }: { queue: string; lane: string; group: string }) {
  const { body, error } = useLive<Explanation>(
    api(["queues", queue, "partitions", lane, "explain"], { consumerGroup: group }),
  );
  if (!body) return <Problem error={error} />;
  const { code, message, advice, also, lease, attempts, head, pending } = body;
  return (
    <Section title={`Why it moves or not, for ${groupName(group)}`}>
      <div class="card">
        <div class="explain" aria-live="polite">
          <p class="says">{message}</p>
          <p class="soft">{advice}</p>
          {also.length > 0 && (
            <ul>
              {also.map((each) => (
                <li key={each.code}>Also: {each.message}</li>
              ))}
            </ul>
          )}
          <p>
            <Badge tone={TONES[code] ?? "warn"}>{code.replaceAll("_", " ")}</Badge>
          </p>
        </div>
        <dl class="facts">
          <dt>Unfinished</dt>
          <dd>{plural(pending, "message")}</dd>
          {head && (
            <>
              <dt>Next message</dt>
              <dd>
                <code>{head.transactionId}</code>, {duration(head.ageSeconds)} old
              </dd>
            </>
          )}
          {lease && (
            <>
              <dt>Lease</dt>
              <dd>
                {lease.isActive
                  ? `held, ${plural(lease.unfinished, "message")} unfinished, ${duration(secondsUntil(lease.expiresAt))} left`
                  : `ran out ${duration(secondsSince(lease.expiresAt))} ago`}
              </dd>
            </>
          )}
          {attempts.failed > 0 && (
            <>
              <dt>Attempts</dt>
              <dd>
                {count(attempts.failed)} failed
                {attempts.retryLimit === null
                  ? ", retried until it succeeds"
                  : ` of ${count(attempts.retryLimit + 1)}`}
              </dd>
              <dt>Errors</dt>
              <dd>
                {attempts.lastErrors.map(({ at, error: text }) => (
                  <div key={at}>
                    <Time at={at} /> {text}
                  </div>
                ))}
              </dd>
            </>
          )}
        </dl>
      </div>
    </Section>
  );
}

const secondsUntil = (time: string): number => (Date.parse(time) - Date.now()) / 1000;

function Clear({ queue, name, onClose }: { queue: string; name: string; onClose: () => void }) {
  const clear = () =>
    attempt(async () => {
      const path = api(["queues", queue, "clear"], { partition: name });
      const { messages } = await remove<{ messages: number }>(path);
      return `Removed ${plural(messages, "message")}.`;
    });
  return (
    <ConfirmByName
      title="Clear the lane"
      name={name}
      action="Remove all messages"
      onConfirm={clear}
      onClose={onClose}
    >
      <p>All messages of this lane are removed for all consumer groups.</p>
    </ConfirmByName>
  );
}
