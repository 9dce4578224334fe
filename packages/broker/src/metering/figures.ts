/** What is counted of a queue and of a worker, since the worker started. */
export const QUEUE_COUNTERS = [
  "push_requests",
  "push_messages",
  "pop_requests",
  "pop_messages",
  "pop_empty",
  "ack_requests",
  "ack_success",
  "ack_failed",
  "transactions",
  "dead_lettered",
  "age_ms_sum",
  "age_count",
] as const;

export const WORKER_COUNTERS = [...QUEUE_COUNTERS, "ack_messages", "database_errors"] as const;

export type Counts<Name extends string> = Record<Name, number>;
export type QueueCounts = Counts<(typeof QUEUE_COUNTERS)[number]>;
export type WorkerCounts = Counts<(typeof WORKER_COUNTERS)[number]>;

export function zeros<Name extends string>(names: readonly Name[]): Counts<Name> {
  return Object.fromEntries(names.map((name) => [name, 0])) as Counts<Name>;
}

/** What was counted between two moments. */
export function difference<Name extends string>(
  names: readonly Name[],
  now: Counts<Name>,
  before: Counts<Name>,
): Counts<Name> {
  const counts = { ...now };
  for (const name of names) counts[name] = now[name] - before[name];
  return counts;
}

export function isSame<Name extends string>(
  names: readonly Name[],
  a: Counts<Name>,
  b: Counts<Name>,
): boolean {
  return names.every((name) => a[name] === b[name]);
}
