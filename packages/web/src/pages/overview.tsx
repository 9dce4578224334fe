/** The overview: how much comes in and goes out, what waits, what went wrong. */
import { api } from "../api.ts";
import { compact, count, duration, milliseconds, plural, rate } from "../format.ts";
import { useLive } from "../live.ts";
import { buckets, Chart } from "../parts/chart.tsx";
import { Doctor } from "../parts/findings.tsx";
import { OpenQueue } from "../parts/open-queue.tsx";
import { Empty, Figure, Head, Problem, Section } from "../parts/pieces.tsx";
import { RangeSwitch, rangeMinutes } from "../parts/range.tsx";
import { Table } from "../parts/table.tsx";
import { link } from "../router.ts";
import { may } from "../session.ts";
import type { OverviewAnswer, QueueRow, StatusAnswer, ThroughputRow } from "../types.ts";

export function Overview() {
  const now = useLive<OverviewAnswer>(api(["resources", "overview"]));
  const past = useLive<StatusAnswer>(api(["status"], { minutes: rangeMinutes() }));
  const behind = useLive<{ queues: readonly QueueRow[] }>(
    api(["resources", "queues"], { sort: "lag", limit: 5 }),
  );
  if (now.body?.queues === 0) return <FirstSteps />;
  return (
    <>
      <Head title="Overview">
        <RangeSwitch />
      </Head>
      <Problem error={now.error} />
      {now.error && <OpenQueue />}
      {now.body && <Figures now={now.body} past={past.body} />}
      {past.body && <Charts past={past.body} />}
      <div class="columns">
        {behind.body && <Behind queues={behind.body.queues} />}
        {past.body && <Brokers past={past.body} />}
      </div>
      {may("admin") && <Doctor isShort />}
    </>
  );
}

/** What somebody sees who has just started his first broker. */
function FirstSteps() {
  return (
    <>
      <Head title="Overview" />
      <div class="card">
        <Empty title="Nothing was pushed yet">
          <p>Push a message, pop it and acknowledge it: the queue is made by its first message.</p>
          <a class="button primary" href={link(["try"])}>
            Try it
          </a>
        </Empty>
      </div>
    </>
  );
}

function Figures({ now, past }: { now: OverviewAnswer; past: StatusAnswer | undefined }) {
  const { messages, lag, throughput } = now;
  const lagTone = lag.time.max > 300 ? "bad" : lag.time.max > 60 ? "warn" : undefined;
  return (
    <div class="figures">
      <Figure label="In" value={rate(throughput.ingestedPerSecond)} unit="/s" note="last minute" />
      <Figure label="Out" value={rate(throughput.processedPerSecond)} unit="/s" note="last minute" />
      <Figure
        label="Waiting"
        value={compact(messages.pending)}
        note={`${count(messages.processing)} being processed`}
        href={link(["queues"], { sort: "depth" })}
      />
      <Figure
        label="Lag"
        value={duration(lag.time.max)}
        note={plural(lag.offset.max, "message")}
        href={link(["groups"])}
        {...(lagTone ? { tone: lagTone } : {})}
      />
      <Figure
        label="Dead letters"
        value={compact(messages.deadLetter)}
        href={link(["dead-letters"])}
        {...(past ? { note: `${count(past.errors.dlqMessages)} in this time` } : {})}
        {...(messages.deadLetter > 0 ? { tone: "bad" as const } : {})}
      />
      <Figure
        label="Queues"
        value={compact(now.queues)}
        note={plural(now.partitions, "lane")}
        href={link(["queues"])}
      />
    </div>
  );
}

function Charts({ past }: { past: StatusAnswer }) {
  const { times, rows } = buckets(
    past.timeRange,
    past.bucketMinutes,
    past.throughput,
    (row) => row.timestamp,
  );
  const rates = (pick: (row: ThroughputRow) => number) => rows.map((row) => (row ? pick(row) : 0));
  const gauge = (pick: (row: ThroughputRow) => number | null) => rows.map((row) => (row ? pick(row) : null));
  return (
    <div class="charts">
      <Chart
        title="Messages per second"
        times={times}
        format={rate}
        series={[
          { label: "in", colour: "accent", values: rates((row) => row.ingestedPerSecond), isFilled: true },
          { label: "delivered", colour: "blue", values: rates((row) => row.popPerSecond) },
          { label: "finished", colour: "good", values: rates((row) => row.processedPerSecond) },
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
      <Chart
        title="Failures"
        times={times}
        format={count}
        series={[
          { label: "failed acks", colour: "warn", values: rates((row) => row.ackFailed) },
          { label: "dead letters", colour: "bad", values: rates((row) => row.dlqCount), isFilled: true },
          { label: "database errors", colour: "soft", values: rates((row) => row.dbErrors) },
        ]}
      />
      <Chart
        title="Processor time of workers"
        times={times}
        format={(value) => `${count(value)} %`}
        series={[
          {
            label: "used",
            colour: "accent",
            isFilled: true,
            values: gauge((row) =>
              row.queenCpuUserPct === null ? null : row.queenCpuUserPct + (row.queenCpuSysPct ?? 0),
            ),
          },
        ]}
      />
    </div>
  );
}

function Behind({ queues }: { queues: readonly QueueRow[] }) {
  return (
    <Section title="Furthest behind">
      <Table label="Queues that are furthest behind">
        <thead>
          <tr>
            <th scope="col">Queue</th>
            <th scope="col" class="number">
              Lag
            </th>
            <th scope="col" class="number">
              Waiting
            </th>
          </tr>
        </thead>
        <tbody>
          {queues.map(({ name, lagSeconds, messages }) => (
            <tr key={name}>
              <td>
                <a href={link(["queues", name])}>{name}</a>
              </td>
              <td class="number">{duration(lagSeconds)}</td>
              <td class="number">{count(messages.pending + messages.processing)}</td>
            </tr>
          ))}
        </tbody>
      </Table>
    </Section>
  );
}

function Brokers({ past }: { past: StatusAnswer }) {
  return (
    <Section title="Workers">
      <Table label="Workers in this time">
        <thead>
          <tr>
            <th scope="col">Worker</th>
            <th scope="col" class="number">
              Finished
            </th>
            <th scope="col" class="number">
              Event loop late
            </th>
            <th scope="col" class="number">
              Connections
            </th>
          </tr>
        </thead>
        <tbody>
          {past.workers.map((worker) => (
            <tr key={`${worker.hostname}/${worker.workerId}`}>
              <td>
                <a href={link(["system"])}>
                  {worker.hostname} / {worker.workerId}
                </a>
              </td>
              <td class="number">{count(worker.messagesProcessed)}</td>
              <td class="number">{milliseconds(worker.maxEventLoopLagMs)}</td>
              <td class="number">{count(worker.dbConnections)}</td>
            </tr>
          ))}
        </tbody>
      </Table>
    </Section>
  );
}
