/** The sampler measures a soak: PostgreSQL's statistics, the brokers' figures and processes, the clients' counts. */
import { readdirSync } from "node:fs";
import { parsePrometheus } from "@queen/test/support/prometheus";
import type { FaultRun } from "../fault-run.ts";
import { memoryMb } from "../rig/processes.ts";
import { type BrokerFigures, HOT_TABLES, type Minute, type TableFigures } from "./minute.ts";
import type { Figures } from "./soak-load.ts";

const TABLES = `
  select relname as name, pg_table_size(relid)::float8 as "tableBytes", pg_indexes_size(relid)::float8 as "indexBytes",
         n_live_tup::float8 as live, n_dead_tup::float8 as dead,
         n_tup_upd::float8 as updates, n_tup_hot_upd::float8 as "hotUpdates",
         extract(epoch from clock_timestamp() - greatest(last_vacuum, last_autovacuum))::float8 as "vacuumedSecondsAgo"
    from pg_stat_user_tables where schemaname = 'queen' order by relname`;

// Rows with their header and line pointer, on pages that are filled by half.
const LIVE_BYTES = HOT_TABLES.map(
  (name) =>
    `select '${name}' as name, coalesce(sum(pg_column_size(t.*) + 8), 0)::float8 * 2 as bytes from queen.${name} t`,
).join(" union all ");

// mxid_age counts from 1, the first there ever was.
const DATABASE = `
  select pg_snapshot_xmax(pg_current_snapshot())::text::float8 as xids, mxid_age('1'::xid)::float8 as multixacts,
         (select count(*) from pg_attribute)::float8 as "catalogRows",
         (select count(*) from queen.dead_letters)::float8 as "deadLetters",
         (select coalesce(sum(next_offset - start_offset), 0) from queen.partitions)::float8 as "logMessages",
         (select coalesce(sum(p.next_offset - c.committed), 0) from queen.partition_consumers c
            join queen.partitions p on p.id = c.partition_id)::float8 as lag`;

const MEGABYTE = 1024 ** 2;

export class Sampler {
  readonly #run: FaultRun;
  readonly #counters = new Map<string, { last: number; total: number }>();
  readonly #heapMb: number[] = [];
  #base: { xids: number; multixacts: number } | undefined;
  #before: Figures | undefined;
  #minute = 0;

  constructor(run: FaultRun) {
    this.#run = run;
  }

  /** From here on it counts. */
  async start(figures: Figures): Promise<void> {
    const [row] = await this.#run.query(DATABASE);
    this.#base = { xids: row!.xids as number, multixacts: row!.multixacts as number };
    this.#before = { ...figures };
    await this.#readTables();
    await this.look();
    for (const counter of this.#counters.values()) counter.total = 0;
  }

  /** Between minutes: what is lost with a process that is killed, and the heap when it is small. */
  async look(): Promise<void> {
    for (const [index] of this.#run.brokers.entries()) {
      const text = await this.#metrics(index);
      if (text === undefined) continue;
      const families = parsePrometheus(text);
      const calls = families
        .get("queen_database_duration_seconds")!
        .series.filter(({ name }) => name.endsWith("_count"));
      this.#count(
        `calls ${index}`,
        calls.reduce((sum, { value }) => sum + value, 0),
      );
      const heap = families.get("queen_process_heap_bytes")!.series[0]!.value / MEGABYTE;
      this.#heapMb[index] = Math.min(this.#heapMb[index] ?? Infinity, heap);
    }
  }

  /** Throws where something is away; then it is asked again, and nothing is counted twice. */
  async minute(figures: Figures, faults: readonly string[]): Promise<Minute> {
    await this.look();
    const [row] = await this.#run.query(DATABASE);
    const { xids, multixacts, ...database } = row as Record<
      "xids" | "multixacts" | "catalogRows" | "deadLetters" | "logMessages" | "lag",
      number
    >;
    const live = await this.#run.query(LIVE_BYTES);
    const tables = await this.#readTables();
    const spooled = await this.#run.spooled();
    const before = this.#before!;
    this.#before = { ...figures };
    this.#minute++;
    const minute: Minute = {
      minute: this.#minute,
      faults: [...faults],
      pushed: figures.stored - before.stored,
      buffered: figures.buffered - before.buffered,
      delivered: figures.delivered - before.delivered,
      acked: figures.acked - before.acked,
      redelivered: figures.redelivered - before.redelivered,
      ...database,
      spooled,
      brokers: this.#run.brokers.map((_, index) => this.#broker(index)),
      tables,
      liveBytes: Object.fromEntries(live.map(({ name, bytes }) => [name as string, bytes as number])),
      xids: xids - this.#base!.xids,
      multixacts: multixacts - this.#base!.multixacts,
      calls: this.#run.brokers.reduce((sum, _, index) => sum + this.#total(`calls ${index}`), 0),
      violations: figures.violations,
      clientsMb: Math.round(figures.memoryMb),
      remembered: figures.remembered,
    };
    this.#heapMb.length = 0;
    return minute;
  }

  #broker(index: number): BrokerFigures {
    const { pids } = this.#run.brokers[index]!;
    const memories = pids.map(memoryMb);
    return {
      memoryMb: round(memories.reduce((sum, memory) => sum + memory, 0)),
      processMb: round(Math.max(0, ...memories)),
      heapMb: round(this.#heapMb[index] ?? 0),
      files: pids.reduce((sum, pid) => sum + openFiles(pid), 0),
    };
  }

  async #readTables(): Promise<Record<string, TableFigures>> {
    const tables: Record<string, TableFigures> = {};
    for (const { name, ...figures } of await this.#run.query(TABLES)) {
      const { updates, hotUpdates, ...rest } = figures as unknown as TableFigures;
      this.#count(`updates ${name}`, updates);
      this.#count(`hotUpdates ${name}`, hotUpdates);
      tables[name as string] = {
        ...rest,
        updates: this.#total(`updates ${name}`),
        hotUpdates: this.#total(`hotUpdates ${name}`),
      };
    }
    return tables;
  }

  /** A counter that is lower than before began anew. */
  #count(name: string, value: number): void {
    const counter = this.#counters.get(name) ?? { last: 0, total: 0 };
    counter.total += value < counter.last ? value : value - counter.last;
    counter.last = value;
    this.#counters.set(name, counter);
  }

  #total(name: string): number {
    return this.#counters.get(name)?.total ?? 0;
  }

  async #metrics(index: number): Promise<string | undefined> {
    try {
      const answer = await this.#run.client(index).request("GET", "/metrics/prometheus");
      return answer.status === 200 ? answer.text : undefined;
    } catch {
      return undefined; // it is being killed
    }
  }
}

const round = (value: number): number => Math.round(value * 10) / 10;

function openFiles(pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/fd`).length;
  } catch {
    return 0;
  }
}
