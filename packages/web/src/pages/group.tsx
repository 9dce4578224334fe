/** A consumer group in a queue: how far it is behind, lane by lane, and moving or forgetting it. */
import { useState } from "preact/hooks";
import { api, remove } from "../api.ts";
import { compact, count, duration, groupName, milliseconds, plural, queueName } from "../format.ts";
import { useLive } from "../live.ts";
import { buckets, Chart } from "../parts/chart.tsx";
import { ConfirmByName } from "../parts/dialog.tsx";
import { GroupState } from "../parts/group-table.tsx";
import { attempt } from "../parts/notices.tsx";
import { Allowed, Badge, Empty, Figure, Head, Problem, Section, Time } from "../parts/pieces.tsx";
import { RangeSwitch, rangeMinutes } from "../parts/range.tsx";
import { SeekDialog } from "../parts/seek.tsx";
import { Pager, Table } from "../parts/table.tsx";
import { change, go, link, place } from "../router.ts";
import type { GroupRow, TimeRange } from "../types.ts";

const PER_PAGE = 100;

export function GroupPage({ parts }: { parts: readonly string[] }) {
  const [name, queue] = [parts[1]!, parts[2]!];
  const groups = useLive<readonly GroupRow[]>(api(["consumer-groups"], { queue }));
  const group = groups.body?.find((each) => each.name === name);
  const [open, setOpen] = useState<"seek" | "delete">();
  const close = (): void => setOpen(undefined);
  return (
    <>
      <Head
        title={groupName(name)}
        above={[
          ["Consumer groups", link(["groups"])],
          [queueName(queue), link(["queues", queue])],
        ]}
        badges={group && <GroupState state={group.state} />}
      >
        <Allowed to="write">
          <button type="button" disabled={!group} onClick={() => setOpen("seek")}>
            Seek
          </button>
        </Allowed>
        <Allowed to="admin">
          <button type="button" class="danger" disabled={!group} onClick={() => setOpen("delete")}>
            Delete
          </button>
        </Allowed>
      </Head>
      <Problem error={groups.error} />
      {groups.body && !group && (
        <div class="card">
          <Empty title="There is no such group in this queue" />
        </div>
      )}
      {group && (
        <>
          <div class="figures">
            <Figure label="Unfinished" value={compact(group.totalLag)} unit="messages" />
            <Figure label="Lag" value={duration(group.maxTimeLag)} note="age of the oldest unfinished" />
            <Figure
              label="Lanes behind"
              value={compact(group.partitionsWithLag)}
              note={`of ${count(group.members)} met`}
            />
            <Figure
              label="Started"
              value={group.subscriptionMode}
              note={<Time at={group.subscriptionTimestamp} />}
            />
          </div>
          <Lag group={group} />
          <Lanes name={name} queue={queue} />
        </>
      )}
      {open === "seek" && <SeekDialog queue={queue} group={name} onClose={close} />}
      {open === "delete" && <Delete name={name} queue={queue} onClose={close} />}
    </>
  );
}

interface DeliveryRow {
  readonly bucketTime: string;
  readonly avgLagMs: number;
  readonly maxLagMs: number;
}

interface LagHistory {
  readonly timeRange: TimeRange;
  readonly bucketMinutes: number;
  readonly series: readonly {
    readonly bucket: string;
    readonly messages: number;
    readonly oldestSeconds: number;
  }[];
}

const NO_HISTORY: LagHistory["series"] = [];

/** The group's own lag is noted every minute, and ends with what it is now; ages at delivery are the queue's. */
function Lag({ group }: { group: GroupRow }) {
  const minutes = rangeMinutes();
  const { name, queueName: queue } = group;
  const history = useLive<LagHistory>(api(["consumer-groups", name, "queues", queue, "lag"], { minutes }));
  const deliveries = useLive<readonly DeliveryRow[]>(api(["analytics", "queue-lag"], { queue, minutes }));
  const now = Date.now();
  const range = history.body?.timeRange ?? {
    from: new Date(now - minutes * 60_000).toISOString(),
    to: new Date(now).toISOString(),
  };
  const step = history.body?.bucketMinutes ?? 1;
  const noted = buckets(range, step, history.body?.series ?? NO_HISTORY, (row) => row.bucket);
  const delivered = buckets(range, step, deliveries.body ?? [], (row) => row.bucketTime);
  const times = [...noted.times, now / 1000];
  return (
    <Section title="Lag over time" actions={<RangeSwitch />}>
      <Problem error={history.error} />
      <div class="charts">
        <Chart
          title="Unfinished messages"
          times={times}
          format={count}
          series={[
            {
              label: "unfinished",
              colour: "accent",
              values: [...noted.rows.map((row) => row?.messages ?? null), group.totalLag],
              isFilled: true,
              isJoined: true,
            },
          ]}
        />
        <Chart
          title="Age of the oldest unfinished message"
          times={times}
          format={duration}
          series={[
            {
              label: "oldest",
              colour: "warn",
              values: [...noted.rows.map((row) => row?.oldestSeconds ?? null), group.maxTimeLag],
              isFilled: true,
              isJoined: true,
            },
          ]}
        />
        <Chart
          title="Age at delivery, of the whole queue"
          times={delivered.times}
          format={milliseconds}
          series={[
            { label: "longest", colour: "warn", values: delivered.rows.map((row) => row?.maxLagMs ?? null) },
            {
              label: "mean",
              colour: "accent",
              values: delivered.rows.map((row) => row?.avgLagMs ?? null),
              isFilled: true,
            },
          ]}
        />
      </div>
    </Section>
  );
}

interface PlaceRow {
  readonly partition: string;
  readonly lastConsumedAt: string | null;
  readonly totalConsumed: number;
  readonly offsetLag: number;
  readonly timeLagSeconds: number;
  readonly leaseActive: boolean;
}

function Lanes({ name, queue }: { name: string; queue: string }) {
  const offset = Number(place.value.query.get("offset") ?? 0);
  const { body, total, isFresh } = useLive<Readonly<Record<string, { partitions: readonly PlaceRow[] }>>>(
    api(["consumer-groups", name], { queue, limit: PER_PAGE, offset: offset || null }),
  );
  const lanes = body?.[queue]?.partitions ?? [];
  return (
    <Section title="Lanes" note={total === null ? undefined : plural(total, "lane")}>
      <Table label="Lanes of the group" isBusy={!isFresh}>
        <thead>
          <tr>
            <th scope="col">Lane</th>
            <th scope="col" class="number">
              Unfinished
            </th>
            <th scope="col" class="number">
              Oldest waits
            </th>
            <th scope="col" class="number wide">
              Finished
            </th>
            <th scope="col" class="number wide">
              Last consumed
            </th>
            <th scope="col">Lease</th>
          </tr>
        </thead>
        <tbody>
          {lanes.map((lane) => (
            <tr key={lane.partition}>
              <td>
                <a href={link(["queues", queue, "lanes", lane.partition], { group: name })}>
                  {lane.partition}
                </a>
              </td>
              <td class={lane.offsetLag === 0 ? "number zero" : "number"}>{count(lane.offsetLag)}</td>
              <td class={lane.timeLagSeconds === 0 ? "number zero" : "number"}>
                {duration(lane.timeLagSeconds)}
              </td>
              <td class="number wide">{count(lane.totalConsumed)}</td>
              <td class="number wide">
                <Time at={lane.lastConsumedAt} />
              </td>
              <td>{lane.leaseActive && <Badge tone="accent">held</Badge>}</td>
            </tr>
          ))}
        </tbody>
      </Table>
      <Pager
        offset={offset}
        limit={PER_PAGE}
        total={total ?? 0}
        onPage={(to) => change({ offset: to || null })}
      />
    </Section>
  );
}

function Delete({ name, queue, onClose }: { name: string; queue: string; onClose: () => void }) {
  const erase = async (): Promise<boolean> => {
    const isDone = await attempt(async () => {
      await remove(api(["consumer-groups", name, "queues", queue]));
      return `${groupName(name)} is forgotten in ${queueName(queue)}.`;
    });
    if (isDone) go(["groups"]);
    return isDone;
  };
  return (
    <ConfirmByName
      title="Delete the consumer group"
      name={name}
      action="Forget the group"
      onConfirm={erase}
      onClose={onClose}
    >
      <p>
        Its places in {queueName(queue)} are forgotten. If it pops again, it starts anew, with everything in
        the log.
      </p>
    </ConfirmByName>
  );
}
