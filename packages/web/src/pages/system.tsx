/** The system: workers, slots, batches, the states of pops, PostgreSQL, and the doctor's findings. */
import { api } from "../api.ts";
import { bytes, compact, count, duration, milliseconds, plural } from "../format.ts";
import { useLive } from "../live.ts";
import { buckets, Chart } from "../parts/chart.tsx";
import { Database } from "../parts/database.tsx";
import { Doctor } from "../parts/findings.tsx";
import { Figure, Head, Problem, Section } from "../parts/pieces.tsx";
import { RangeSwitch, rangeMinutes } from "../parts/range.tsx";
import { Table } from "../parts/table.tsx";
import { may } from "../session.ts";
import type { TimeRange } from "../types.ts";

interface Operation {
  readonly count: number;
  readonly items: number;
  readonly failures: number;
  readonly avg_ms: number;
  readonly wait_ms_avg: number;
  readonly database_ms_avg: number;
  readonly batch_operations_avg: number;
  readonly batch_operations_max: number;
  readonly pending: number;
  readonly slots_busy: number;
}

interface Metrics {
  readonly uptime: number;
  readonly worker: { readonly hostname: string; readonly count: number };
  readonly requests: { readonly total: number; readonly active: number };
  readonly database: {
    readonly poolSize: number;
    readonly idleConnections: number;
    readonly waitingRequests: number;
  };
  readonly memory: { readonly rss: number };
  readonly sidecar: { readonly operations: Readonly<Record<string, Operation>> };
  readonly pops: {
    readonly live: number;
    readonly parked: number;
    readonly states: Readonly<Record<string, { readonly count: number; readonly ms_avg: number }>>;
  };
  readonly bus: { readonly state: string; readonly peers: number };
  readonly caches: Readonly<Record<string, number>>;
  readonly workers: readonly {
    readonly id: number;
    readonly pid: number;
    readonly uptime: number;
    readonly requests: { readonly total: number; readonly active: number };
    readonly rss: number;
    readonly pops: { readonly live: number; readonly parked: number };
    readonly bus: { readonly state: string; readonly peers: number };
  }[];
}

export function System() {
  const { body, error } = useLive<Metrics>(api(["system", "metrics"]));
  return (
    <>
      <Head title="System">
        <RangeSwitch />
      </Head>
      <Problem error={error} />
      {body && (
        <>
          <div class="figures">
            <Figure label="Uptime" value={duration(body.uptime)} note={body.worker.hostname} />
            <Figure
              label="Requests"
              value={compact(body.requests.total)}
              note={`${count(body.requests.active)} under way`}
            />
            <Figure
              label="Connections"
              value={count(body.database.poolSize)}
              note={`${count(body.database.idleConnections)} idle, ${count(body.database.waitingRequests)} waiting`}
            />
            <Figure
              label="Waiting pops"
              value={compact(body.pops.parked)}
              note={`${count(body.pops.live)} under way`}
            />
            <Figure label="Memory" value={bytes(body.memory.rss)} note="resident" />
            <Figure label="Bus" value={body.bus.state} note={plural(body.bus.peers, "peer")} />
          </div>
          <Load />
          <Operations metrics={body} />
          <div class="columns">
            <PopStates metrics={body} />
            <Workers metrics={body} />
          </div>
        </>
      )}
      <Database />
      {may("admin") && <Doctor />}
    </>
  );
}

interface WorkerBucket {
  readonly timestamp: string;
  readonly maxEventLoopLagMs: number;
  readonly avgEventLoopLagMs: number;
  readonly minFreeSlots: number;
  readonly dbConnections: number;
}

function Load() {
  const { body } = useLive<{
    timeRange: TimeRange;
    bucketMinutes: number;
    timeSeries: readonly WorkerBucket[];
  }>(api(["analytics", "worker-metrics"], { minutes: rangeMinutes() }));
  if (!body) return null;
  const { times, rows } = buckets(
    body.timeRange,
    body.bucketMinutes,
    body.timeSeries,
    (row) => row.timestamp,
  );
  const gauge = (pick: (row: WorkerBucket) => number) => rows.map((row) => (row ? pick(row) : null));
  return (
    <div class="charts">
      <Chart
        title="Event loop late"
        times={times}
        format={milliseconds}
        series={[
          { label: "longest", colour: "warn", values: gauge((row) => row.maxEventLoopLagMs) },
          { label: "mean", colour: "accent", values: gauge((row) => row.avgEventLoopLagMs), isFilled: true },
        ]}
      />
      <Chart
        title="Connections to PostgreSQL"
        times={times}
        format={count}
        series={[
          { label: "open", colour: "accent", values: gauge((row) => row.dbConnections), isFilled: true },
          { label: "free, at least", colour: "good", values: gauge((row) => row.minFreeSlots) },
        ]}
      />
    </div>
  );
}

function Operations({ metrics }: { metrics: Metrics }) {
  return (
    <Section title="Operations and batches" note="Since the start, over all workers of this broker">
      <Table label="Operations and batches">
        <thead>
          <tr>
            <th scope="col">Operation</th>
            <th scope="col" class="number">
              Requests
            </th>
            <th scope="col" class="number">
              Messages
            </th>
            <th scope="col" class="number">
              Answer
            </th>
            <th scope="col" class="number wide">
              Slot wait
            </th>
            <th scope="col" class="number wide">
              Database
            </th>
            <th scope="col" class="number">
              Batch (max)
            </th>
            <th scope="col" class="number">
              Slots busy
            </th>
            <th scope="col" class="number">
              Waiting
            </th>
            <th scope="col" class="number wide">
              Failed
            </th>
          </tr>
        </thead>
        <tbody>
          {Object.entries(metrics.sidecar.operations).map(([name, operation]) => (
            <tr key={name}>
              <td>{name.replaceAll("_", " ")}</td>
              <td class="number">{count(operation.count)}</td>
              <td class="number">{count(operation.items)}</td>
              <td class="number">{milliseconds(operation.avg_ms)}</td>
              <td class="number wide">{milliseconds(operation.wait_ms_avg)}</td>
              <td class="number wide">{milliseconds(operation.database_ms_avg)}</td>
              <td class="number">
                {operation.batch_operations_avg.toFixed(1)} ({count(operation.batch_operations_max)})
              </td>
              <td class="number">{count(operation.slots_busy)}</td>
              <td class="number">{count(operation.pending)}</td>
              <td class={operation.failures > 0 ? "number wide text-bad" : "number wide zero"}>
                {count(operation.failures)}
              </td>
            </tr>
          ))}
        </tbody>
      </Table>
    </Section>
  );
}

function PopStates({ metrics }: { metrics: Metrics }) {
  return (
    <Section title="States of pops">
      <Table label="States of pops">
        <thead>
          <tr>
            <th scope="col">State</th>
            <th scope="col" class="number">
              Entered
            </th>
            <th scope="col" class="number">
              Stayed
            </th>
          </tr>
        </thead>
        <tbody>
          {Object.entries(metrics.pops.states).map(([name, state]) => (
            <tr key={name}>
              <td>{name.toLowerCase()}</td>
              <td class="number">{count(state.count)}</td>
              <td class="number">{milliseconds(state.ms_avg)}</td>
            </tr>
          ))}
        </tbody>
      </Table>
    </Section>
  );
}

function Workers({ metrics }: { metrics: Metrics }) {
  return (
    <Section title="Workers of this broker">
      <Table label="Workers of this broker">
        <thead>
          <tr>
            <th scope="col">Worker</th>
            <th scope="col" class="number">
              Process
            </th>
            <th scope="col" class="number">
              Uptime
            </th>
            <th scope="col" class="number">
              Requests
            </th>
            <th scope="col" class="number">
              Pops parked
            </th>
            <th scope="col" class="number">
              Memory
            </th>
          </tr>
        </thead>
        <tbody>
          {metrics.workers.map((worker) => (
            <tr key={worker.pid}>
              <td>{worker.id}</td>
              <td class="number">{worker.pid}</td>
              <td class="number">{duration(worker.uptime)}</td>
              <td class="number">{count(worker.requests.total)}</td>
              <td class="number">{count(worker.pops.parked)}</td>
              <td class="number">{bytes(worker.rss)}</td>
            </tr>
          ))}
        </tbody>
      </Table>
    </Section>
  );
}
