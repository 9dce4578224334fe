/**
 * A soak is a long run: two brokers on a PostgreSQL of their own, at a part of what they can do, with retention,
 * and now and then a fault. It is about what grows, wears out or gets stuck, and what is lost along the way.
 *
 *   start ──▶ the most for 20 s ──▶ 30 % of it, measured every minute, disturbed ──▶ indexes ──▶ drained ──▶ verdict
 */
import { setTimeout as sleep } from "node:timers/promises";
import { until } from "@queen/test/support/moments";
import { drain } from "../drain.ts";
import { FaultRun } from "../fault-run.ts";
import { brokenCeilings, brokenIndexes, type IndexSize, type Plan } from "./ceilings.ts";
import { SoakClients } from "./clients.ts";
import { disturbances } from "./disturbance.ts";
import type { Minute } from "./minute.ts";
import type { Options } from "./options.ts";
import { Sampler } from "./sampler.ts";
import { GROUPS, QUEUE, SHAPE } from "./shape.ts";

export interface Watcher {
  begun(rate: number, most: number | null, plan: Plan): void;
  tell(phase: string, figures?: { stored: number; acked: number }): void;
  say(line: string): void;
  minute(minute: Minute): void;
}

export interface SoakResult {
  readonly pushed: number;
  readonly delivered: number;
  readonly faults: number;
  readonly redelivered: number;
  readonly requests: Readonly<Record<string, number>>;
  readonly indexes: readonly IndexSize[];
  /** What did not hold, a sentence each. */
  readonly problems: readonly string[];
}

const WARM_UP_MS = 5_000;
const MEASURE_MS = 15_000;
const SHARE_OF_MOST = 0.3;
const MINUTE_MS = 60_000;
const LOOK_EVERY_MS = 5_000;
const FIGURES_MS_MAX = 60_000;
const HEAL_MS_MAX = 60_000;
const DRAIN_MS_MAX = 180_000;
const REDELIVERED_SHARE_MAX = 0.02;

const clamp = (value: number, min: number, max: number): number => Math.min(max, Math.max(min, value));

export async function soak(options: Options, watcher: Watcher, abort: AbortSignal): Promise<SoakResult> {
  const seconds = options.hours * 3_600;
  // Long enough that what a minute brings is a small part of the log, short enough that the log is full soon.
  const retentionSeconds = Math.round(clamp(seconds / 6, 20, 600));
  const plan: Plan = { retentionSeconds, sweepSeconds: Math.max(1, Math.round(retentionSeconds / 20)) };
  const run = new FaultRun({
    id: "soak",
    seed: options.seed,
    seconds,
    tell: (phase) => watcher.tell(phase),
  });
  try {
    return await new Soak(run, options, plan, watcher, abort).run(seconds * 1_000);
  } finally {
    await run.dispose();
  }
}

class Soak {
  readonly #run: FaultRun;
  readonly #options: Options;
  readonly #plan: Plan;
  readonly #watcher: Watcher;
  readonly #abort: AbortSignal;
  readonly #minutes: Minute[] = [];
  readonly #problems = new Set<string>();
  #clients!: SoakClients;
  #faults: string[] = [];
  #faultCount = 0;
  #endMs = 0;

  constructor(run: FaultRun, options: Options, plan: Plan, watcher: Watcher, abort: AbortSignal) {
    this.#run = run;
    this.#options = options;
    this.#plan = plan;
    this.#watcher = watcher;
    this.#abort = abort;
  }

  async run(ms: number): Promise<SoakResult> {
    const run = this.#run;
    await run.startPostgres();
    const proxy = await run.startProxy();
    const env = { RETENTION_INTERVAL: String(this.#plan.sweepSeconds * 1_000) };
    await run.startBrokers(1, { env });
    await run.startBrokers(1, { env, databaseUrl: proxy.urlOf(run.databaseUrl) });
    await run.client().configure(QUEUE, {
      leaseTime: SHAPE.leaseSeconds,
      retryLimit: SHAPE.retryLimit,
      retryDelay: 50,
      retentionEnabled: true,
      completedRetentionSeconds: this.#plan.retentionSeconds,
      dedupWindowSeconds: this.#plan.retentionSeconds,
    });
    this.#clients = new SoakClients({
      shape: SHAPE,
      urls: run.brokers.map(({ url }) => url),
      seed: this.#options.seed,
    });
    run.onEnd(() => this.#clients.kill());
    await this.#setRate();
    const sampler = new Sampler(run);
    await sampler.start(this.#clients.figures);
    this.#endMs = performance.now() + ms;
    await Promise.all([this.#measure(sampler), this.#disturb(disturbances(run, proxy))]);
    const indexes = await this.#rebuildIndexes();
    for (const problem of brokenIndexes(indexes, SHAPE.partitions + 1)) this.#problem(problem);
    await this.#finish();
    const { stored, delivered, redelivered, requests } = this.#clients.figures;
    return {
      pushed: stored,
      delivered,
      faults: this.#faultCount,
      redelivered,
      requests,
      indexes,
      problems: [...this.#problems],
    };
  }

  /** A problem is told when it is met, and once. */
  #problem(text: string): void {
    if (this.#problems.has(text)) return;
    this.#problems.add(text);
    this.#watcher.say(`     FAILED: ${text}`);
  }

  async #setRate(): Promise<void> {
    let most: number | null = null;
    if (this.#options.rate === undefined) {
      this.#tell("looking for the most that it can do");
      await this.#sleep(WARM_UP_MS);
      const before = { ...this.#clients.figures };
      const startedMs = performance.now();
      await this.#sleep(MEASURE_MS);
      const after = this.#clients.figures;
      const seconds = (performance.now() - startedMs) / 1_000;
      most = Math.min(after.stored - before.stored, (after.acked - before.acked) / GROUPS.length) / seconds;
    }
    const rate = Math.max(1, Math.round(this.#options.rate ?? most! * SHARE_OF_MOST));
    this.#clients.setRate(rate);
    this.#watcher.begun(rate, most === null ? null : Math.round(most), this.#plan);
  }

  async #measure(sampler: Sampler): Promise<void> {
    for (let next = performance.now() + MINUTE_MS; next <= this.#endMs + 1_000; next += MINUTE_MS) {
      while (performance.now() < next) {
        await this.#sleep(clamp(next - performance.now(), 1, LOOK_EVERY_MS));
        await sampler.look();
        this.#tell(`${Math.max(0, Math.round((this.#endMs - performance.now()) / 1_000))} s to go`);
      }
      const faults = this.#faults;
      this.#faults = [];
      const { figures } = this.#clients;
      const minute = await until(
        "the minute's figures could be read",
        () => sampler.minute(figures, faults),
        FIGURES_MS_MAX,
      );
      this.#minutes.push(minute);
      this.#watcher.minute(minute);
      for (const problem of brokenCeilings(this.#minutes, this.#plan)) this.#problem(problem);
    }
  }

  async #disturb(kinds: ReturnType<typeof disturbances>): Promise<void> {
    const run = this.#run;
    const everyMs = clamp((this.#endMs - performance.now()) / 7, 20_000, 600_000);
    for (let turn = Math.floor(run.random() * kinds.length); ; turn++) {
      await this.#sleep(everyMs * (0.7 + 0.6 * run.random()));
      // The last minute is for what the others left behind.
      if (performance.now() + Math.min(everyMs, MINUTE_MS) > this.#endMs) return;
      const { name, cause } = kinds[turn % kinds.length]!;
      this.#faults.push(name);
      this.#faultCount++;
      this.#tell(name);
      await cause();
      const { stored, acked } = this.#clients.figures;
      const isHealed = (): boolean => {
        const now = this.#clients.figures;
        return now.stored > stored && now.acked > acked;
      };
      await until("pushes and acks went on", isHealed, HEAL_MS_MAX).catch((error: Error) =>
        this.#problem(`after "${name}": ${error.message}`),
      );
    }
  }

  /** What each index has, and what it has when it is built anew: the difference is bloat. */
  async #rebuildIndexes(): Promise<IndexSize[]> {
    this.#tell("building indexes anew");
    const sizes = async (): Promise<Map<string, number>> => {
      const rows = await this.#run.query(
        `select c.relname as name, pg_relation_size(c.oid)::float8 as bytes from pg_class c
          where c.relkind = 'i' and c.relnamespace = 'queen'::regnamespace order by 1`,
      );
      return new Map(rows.map(({ name, bytes }) => [name as string, bytes as number]));
    };
    const before = await sizes();
    await this.#run.query("reindex schema queen");
    const after = await sizes();
    return [...before].map(([name, bytes]) => ({ name, bytes, freshBytes: after.get(name) ?? 0 }));
  }

  async #finish(): Promise<void> {
    const run = this.#run;
    this.#tell("the last pushes");
    await this.#clients.endPushes();
    const readers = GROUPS.map((group) => ({ queue: QUEUE, group }));
    if (!(await drain(run, readers, DRAIN_MS_MAX)))
      this.#problem(`not everything was consumed ${DRAIN_MS_MAX / 1_000} s after the last push`);
    const dead = await run.query(
      `select consumer_group as "group", partition_name as partition, message_offset::float8 as "offset"
         from queen.dead_letters`,
    );
    const verdict = await this.#clients.end(
      dead.map(({ group, partition, offset }) => [
        group as string,
        `${QUEUE}/${partition}`,
        offset as number,
      ]),
    );
    for (const { rule, message } of verdict.examples) this.#problem(`${rule}: ${message}`);
    for (const [rule, count] of Object.entries(verdict.counts))
      this.#watcher.say(`     ${count} times: ${rule}`);
    const { figures } = this.#clients;
    for (const surprise of figures.surprises) this.#problem(`an answer that no fault excuses: ${surprise}`);
    if (figures.redelivered > figures.delivered * REDELIVERED_SHARE_MAX)
      this.#problem(
        `${figures.redelivered} of ${figures.delivered} deliveries were of messages that nobody gave back; ` +
          `${100 * REDELIVERED_SHARE_MAX} % are the most`,
      );
    for (const problem of run.outcome.problems) this.#problem(problem);
  }

  #tell(phase: string): void {
    this.#watcher.tell(phase, this.#clients.figures);
  }

  async #sleep(ms: number): Promise<void> {
    await sleep(Math.min(ms, Math.max(0, this.#endMs ? this.#endMs - performance.now() : ms)), undefined, {
      signal: this.#abort,
    });
  }
}
