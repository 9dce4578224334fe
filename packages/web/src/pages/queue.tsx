/** A queue: its figures, who reads it, its lanes, and what an operator does with it. */
import { useState } from "preact/hooks";
import { api, post, remove } from "../api.ts";
import { compact, duration, milliseconds, plural, queueName, rate } from "../format.ts";
import { useLive } from "../live.ts";
import { buckets, Chart } from "../parts/chart.tsx";
import { ConfirmByName } from "../parts/dialog.tsx";
import { GroupTable } from "../parts/group-table.tsx";
import { LaneTable } from "../parts/lane-table.tsx";
import { attempt } from "../parts/notices.tsx";
import { OptionEditor, OptionList } from "../parts/options.tsx";
import { PauseDialog, PauseList } from "../parts/pauses.tsx";
import { Allowed, Badge, Figure, Head, Problem, Section } from "../parts/pieces.tsx";
import { RangeSwitch, rangeMinutes } from "../parts/range.tsx";
import { go, link, place } from "../router.ts";
import type { GroupRow, Pause, QueueAnswer, TimeRange } from "../types.ts";

const LANES_PER_PAGE = 50;
const LANE_SORTS = ["name", "depth", "age", "trouble"] as const;

type Open = "options" | "pause" | "clear" | "delete" | undefined;

export function Queue({ parts }: { parts: readonly string[] }) {
  const name = parts[1]!;
  const { query } = place.value;
  const sort = LANE_SORTS.find((each) => each === query.get("sort")) ?? "depth";
  const offset = Number(query.get("offset") ?? 0);
  const queue = useLive<QueueAnswer>(
    api(["status", "queues", name], {
      sort,
      search: query.get("search"),
      limit: LANES_PER_PAGE,
      offset: offset || null,
    }),
  );
  const groups = useLive<readonly GroupRow[]>(api(["consumer-groups"], { queue: name }));
  const pauses = useLive<{ pauses: readonly Pause[] }>(api(["queues", name, "pauses"]));
  const [open, setOpen] = useState<Open>();
  const close = (): void => setOpen(undefined);
  const whole = pauses.body?.pauses.find((each) => each.partition === null && each.consumerGroup === null);

  const resume = () =>
    attempt(async () => {
      await post(api(["queues", name, "resume"]));
      return `${queueName(name)} delivers again.`;
    });
  return (
    <>
      <Head
        title={queueName(name)}
        above={[["Queues", link(["queues"])]]}
        badges={whole && <Badge tone="warn">paused</Badge>}
      >
        <a class="button" href={link(["messages"], { queue: name })}>
          Messages
        </a>
        <Allowed to="write">
          {whole ? (
            <button type="button" onClick={() => void resume()}>
              Resume
            </button>
          ) : (
            <button type="button" onClick={() => setOpen("pause")}>
              Pause
            </button>
          )}
          <button type="button" onClick={() => setOpen("options")} disabled={!queue.body}>
            Edit options
          </button>
        </Allowed>
        <Allowed to="admin">
          <button type="button" class="danger" onClick={() => setOpen("clear")}>
            Clear
          </button>
          <button type="button" class="danger" onClick={() => setOpen("delete")}>
            Delete
          </button>
        </Allowed>
      </Head>
      <Problem error={queue.error} />
      {queue.body && (
        <>
          <Figures queue={queue.body} groups={groups.body ?? []} />
          <PauseList queue={name} pauses={pauses.body?.pauses ?? []} />
          <Section title="Consumer groups">
            <GroupTable groups={groups.body ?? []} isOfQueue />
          </Section>
          <History name={name} />
          <Section title="Options">
            <OptionList options={queue.body.queue.options} />
          </Section>
          <LaneTable
            queue={name}
            sort={sort}
            offset={offset}
            lanes={queue.body.partitions}
            total={queue.body.pagination.total}
            perPage={LANES_PER_PAGE}
            isFresh={queue.isFresh}
          />
        </>
      )}
      {open === "options" && queue.body && (
        <OptionEditor name={name} options={queue.body.queue.options} onClose={close} />
      )}
      {open === "pause" && <PauseDialog queue={name} groups={groups.body ?? []} onClose={close} />}
      {open === "clear" && <Clear name={name} onClose={close} />}
      {open === "delete" && <Delete name={name} onClose={close} />}
    </>
  );
}

function Figures({ queue, groups }: { queue: QueueAnswer; groups: readonly GroupRow[] }) {
  const { totals, pagination } = queue;
  const lag = Math.max(0, ...groups.map(({ maxTimeLag }) => maxTimeLag));
  return (
    <div class="figures">
      <Figure label="Waiting" value={compact(totals.pending)} />
      <Figure label="Being processed" value={compact(totals.processing)} />
      <Figure label="Lag" value={duration(lag)} note={plural(groups.length, "consumer group")} />
      <Figure
        label="Dead letters"
        value={compact(totals.deadLetter)}
        href={link(["dead-letters"], { queue: queue.queue.name })}
        {...(totals.deadLetter > 0 ? { tone: "bad" as const } : {})}
      />
      <Figure label="In the log" value={compact(totals.total)} />
      <Figure label="Lanes" value={compact(pagination.total)} />
    </div>
  );
}

interface OpsRow {
  readonly bucket: string;
  readonly pushPerSecond: number;
  readonly popPerSecond: number;
  readonly ackPerSecond: number;
  readonly avgLagMs: number;
  readonly maxLagMs: number;
}

function History({ name }: { name: string }) {
  const { body } = useLive<{ timeRange: TimeRange; bucketMinutes: number; series: readonly OpsRow[] }>(
    api(["analytics", "queue-ops"], { queue: name, minutes: rangeMinutes() }),
  );
  if (!body) return null;
  const { times, rows } = buckets(body.timeRange, body.bucketMinutes, body.series, (row) => row.bucket);
  const rates = (pick: (row: OpsRow) => number) => rows.map((row) => (row ? pick(row) : 0));
  const gauge = (pick: (row: OpsRow) => number | null) => rows.map((row) => (row ? pick(row) : null));
  return (
    <Section title="History" actions={<RangeSwitch />}>
      <div class="charts">
        <Chart
          title="Messages per second"
          times={times}
          format={rate}
          series={[
            { label: "in", colour: "accent", values: rates((row) => row.pushPerSecond), isFilled: true },
            { label: "delivered", colour: "blue", values: rates((row) => row.popPerSecond) },
            { label: "finished", colour: "good", values: rates((row) => row.ackPerSecond) },
          ]}
        />
        <Chart
          title="Age at delivery"
          times={times}
          format={milliseconds}
          series={[
            {
              label: "longest",
              colour: "warn",
              values: gauge((row) => (row.popPerSecond > 0 ? row.maxLagMs : null)),
            },
            {
              label: "mean",
              colour: "accent",
              values: gauge((row) => (row.popPerSecond > 0 ? row.avgLagMs : null)),
              isFilled: true,
            },
          ]}
        />
      </div>
    </Section>
  );
}

function Clear({ name, onClose }: { name: string; onClose: () => void }) {
  const [withLetters, setWithLetters] = useState(false);
  const clear = () =>
    attempt(async () => {
      const path = api(["queues", name, "clear"], { deadLetters: withLetters });
      const { messages, deadLetters } = await remove<{ messages: number; deadLetters: number }>(path);
      return `Removed ${plural(messages, "message")}${withLetters ? ` and ${plural(deadLetters, "dead letter")}` : ""}.`;
    });
  return (
    <ConfirmByName
      title="Clear the queue"
      name={name}
      action="Remove all messages"
      onConfirm={clear}
      onClose={onClose}
    >
      <p>All messages are removed for all consumer groups. Lanes, groups and options stay.</p>
      <label class="check">
        <input
          type="checkbox"
          checked={withLetters}
          onChange={(e) => setWithLetters(e.currentTarget.checked)}
        />
        Remove its dead letters, too
      </label>
    </ConfirmByName>
  );
}

function Delete({ name, onClose }: { name: string; onClose: () => void }) {
  const erase = async (): Promise<boolean> => {
    const isDone = await attempt(async () => {
      await remove(api(["resources", "queues", name]));
      return `Queue ${queueName(name)} is deleted.`;
    });
    if (isDone) go(["queues"]);
    return isDone;
  };
  return (
    <ConfirmByName
      title="Delete the queue"
      name={name}
      action="Delete the queue"
      onConfirm={erase}
      onClose={onClose}
    >
      <p>
        The queue goes with its messages, dead letters, consumer groups and options. The next push makes it
        anew.
      </p>
    </ConfirmByName>
  );
}
