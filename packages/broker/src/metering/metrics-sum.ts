/** The figures of `GET /metrics`: of each worker, and summed up over the workers of a broker. */

/** Figures of one kind of operation; names that end in `_avg` are averages over `count` or `batches`. */
export interface OperationMetrics {
  readonly count: number;
  readonly items: number;
  readonly batches: number;
  readonly failures: number;
  readonly avg_ms: number;
  readonly wait_ms_avg: number;
  readonly database_ms_avg: number;
  readonly batch_operations_avg: number;
  readonly batch_operations_max: number;
  readonly pending: number;
  readonly slots_busy: number;
}

export interface WorkerMetrics {
  readonly uptime: number;
  readonly worker: {
    readonly id: number;
    readonly pid: number;
    readonly count: number;
    readonly hostname: string;
  };
  readonly requests: { readonly total: number; readonly active: number };
  readonly messages: Readonly<Record<"pushed" | "popped" | "acked", number>>;
  readonly database: Readonly<Record<"poolSize" | "idleConnections" | "waitingRequests", number>>;
  readonly memory: NodeJS.MemoryUsage;
  readonly cpu: NodeJS.CpuUsage;
  readonly sidecar: {
    readonly connections: Readonly<Record<"total" | "busy", number>>;
    readonly queue: Readonly<Record<"pending" | "completed", number>>;
    readonly operations: Readonly<Record<string, OperationMetrics>>;
  };
  readonly pops: {
    readonly live: number;
    readonly parked: number;
    readonly states: Readonly<Record<string, { readonly count: number; readonly ms_avg: number }>>;
  };
  readonly bus: { readonly state: string; readonly peers: number };
  readonly caches: Readonly<
    Record<"queues" | "lanes" | "segmentBytes" | "dedupBytes" | "leases" | "leaseBytes", number>
  >;
}

/** `worker` and `bus` stay those of the worker that answers. */
export function sumMetrics(
  own: WorkerMetrics,
  others: readonly WorkerMetrics[],
  silent: number,
): Record<string, unknown> {
  const all = [own, ...others].sort((a, b) => a.worker.id - b.worker.id);
  const pick = <T>(of: (each: WorkerMetrics) => T): T[] => all.map(of);
  return {
    uptime: Math.max(...pick((each) => each.uptime)),
    worker: own.worker,
    requests: sums(pick((each) => each.requests)),
    messages: sums(pick((each) => each.messages)),
    database: sums(pick((each) => each.database)),
    memory: sums(pick((each) => each.memory)),
    cpu: sums(pick((each) => each.cpu)),
    sidecar: {
      connections: sums(pick((each) => each.sidecar.connections)),
      queue: sums(pick((each) => each.sidecar.queue)),
      operations: byName(
        pick((each) => each.sidecar.operations),
        sumOperations,
      ),
    },
    pops: {
      live: total(pick((each) => each.pops.live)),
      parked: total(pick((each) => each.pops.parked)),
      states: byName(
        pick((each) => each.pops.states),
        (states) => ({
          count: total(states.map((state) => state.count)),
          ms_avg: average(
            states,
            (state) => state.ms_avg,
            (state) => state.count,
          ),
        }),
      ),
    },
    bus: own.bus,
    caches: sums(pick((each) => each.caches)),
    workers: all.map(({ worker, uptime, requests, messages, memory, pops, bus }) => ({
      id: worker.id,
      pid: worker.pid,
      uptime,
      requests,
      messages,
      rss: memory.rss,
      pops: { live: pops.live, parked: pops.parked },
      bus,
    })),
    silentWorkers: silent,
  };
}

const total = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0);

function sums<T extends Readonly<Record<keyof T, number>>>(records: readonly T[]): Record<keyof T, number> {
  const names = Object.keys(records[0]!) as (keyof T)[];
  return Object.fromEntries(names.map((name) => [name, total(records.map((each) => each[name]))])) as Record<
    keyof T,
    number
  >;
}

function average<T>(items: readonly T[], value: (item: T) => number, weight: (item: T) => number): number {
  const weights = total(items.map(weight));
  if (weights === 0) return 0;
  return Math.round((total(items.map((item) => value(item) * weight(item))) / weights) * 1000) / 1000;
}

function byName<T, R>(
  records: readonly Readonly<Record<string, T>>[],
  sum: (items: T[]) => R,
): Record<string, R> {
  const names = new Set(records.flatMap((record) => Object.keys(record)));
  return Object.fromEntries(
    [...names].map((name) => [name, sum(records.flatMap((record) => record[name] ?? []))]),
  );
}

function sumOperations(operations: readonly OperationMetrics[]): OperationMetrics {
  const sum = (name: keyof OperationMetrics): number => total(operations.map((each) => each[name]));
  const perBatch = (name: "database_ms_avg" | "batch_operations_avg"): number =>
    average(
      operations,
      (each) => each[name],
      (each) => each.batches,
    );
  return {
    count: sum("count"),
    items: sum("items"),
    batches: sum("batches"),
    failures: sum("failures"),
    avg_ms: average(
      operations,
      (each) => each.avg_ms,
      (each) => each.count,
    ),
    wait_ms_avg: average(
      operations,
      (each) => each.wait_ms_avg,
      (each) => each.batches * each.batch_operations_avg,
    ),
    database_ms_avg: perBatch("database_ms_avg"),
    batch_operations_avg: perBatch("batch_operations_avg"),
    batch_operations_max: Math.max(...operations.map((each) => each.batch_operations_max)),
    pending: sum("pending"),
    slots_busy: sum("slots_busy"),
  };
}
