/**
 * The minute writer brings the meter's figures into the minute tables. Every few seconds it writes the minute that is
 * going on as it stands by then, and once more when it is over; where nothing was counted since, it writes nothing.
 *
 *   counting ──▶ minute over: its figures are laid aside, counting starts from here ──▶ written, forgotten
 *
 * Which minute it is, the database's clock says: the difference to the worker's own clock is learnt at the start and
 * with every write. What cannot be written while the database is away is kept for an hour.
 */
import {
  difference,
  isSame,
  QUEUE_COUNTERS,
  type QueueCounts,
  WORKER_COUNTERS,
  type WorkerCounts,
  zeros,
} from "./figures.ts";
import type { GaugeSampler } from "./gauges.ts";
import type { Meter, QueueMeter } from "./meter.ts";

export interface Minutes {
  readonly workers: readonly Record<string, unknown>[];
  readonly queues: readonly Record<string, unknown>[];
}

export interface MinuteWriterOptions {
  readonly meter: Meter;
  readonly gauges: GaugeSampler;
  /** Writes figures and returns the database's clock, in milliseconds. */
  readonly save: (minutes: Minutes) => Promise<number>;
  readonly readClock: () => Promise<number>;
  /** How many consumers wait now, by the queue's id. */
  readonly parked: () => ReadonlyMap<number, number>;
  /** The worker's own clock, in milliseconds. */
  readonly wallMs: () => number;
  readonly sampleMs: number;
  readonly writeMs: number;
  readonly log: (event: string, error: unknown) => void;
}

const MINUTE_MS = 60_000;
const MINUTES_KEPT_MAX = 60;
const QUEUE_IDLE_MINUTES_MAX = 10;
// The last figures are not worth a shutdown that hangs.
const STOP_MS_MAX = 5_000;

interface QueueMinute {
  /** The meter's counts when the minute began, and when they were written last. */
  readonly base: QueueCounts;
  written: QueueCounts;
  parked: number;
  /** Minutes without anything before this one. */
  readonly idleMinutes: number;
}

export class MinuteWriter {
  readonly #options: MinuteWriterOptions;
  #clockAheadMs = 0;
  #minuteMs = 0;
  #workerBase: WorkerCounts = zeros(WORKER_COUNTERS);
  #workerWritten: WorkerCounts = zeros(WORKER_COUNTERS);
  #queues = new Map<number, QueueMinute>();
  #left: Minutes[] = [];
  #sampling: NodeJS.Timeout | undefined;
  #writing: NodeJS.Timeout | undefined;
  #write: Promise<void> = Promise.resolve();

  constructor(options: MinuteWriterOptions) {
    this.#options = options;
    this.#minuteMs = this.#minuteNow();
  }

  /** The database's clock, as far as it is known. */
  get nowMs(): number {
    return this.#options.wallMs() + this.#clockAheadMs;
  }

  start(): void {
    this.#compareClocks(this.#options.readClock).catch((error) =>
      this.#options.log("metrics.clock_unknown", error),
    );
    this.#sampling = setInterval(() => this.#sample(), this.#options.sampleMs);
    this.#writing = setInterval(() => void this.flush(), this.#options.writeMs);
  }

  /** Writes what is left, if the database takes it soon. */
  async stop(): Promise<void> {
    clearInterval(this.#sampling);
    clearInterval(this.#writing);
    this.#options.gauges.stop();
    let deadline: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      deadline = setTimeout(resolve, STOP_MS_MAX);
    });
    await Promise.race([this.flush(), late]);
    clearTimeout(deadline);
  }

  /** Writes what is new; one write at a time. Never rejects: what was not written is written with the next. */
  flush(): Promise<void> {
    this.#write = this.#write.then(() => this.#flush());
    return this.#write;
  }

  #sample(): void {
    if (this.#minuteNow() !== this.#minuteMs) this.#turn();
    this.#options.gauges.sample();
  }

  #minuteNow(): number {
    return Math.floor(this.nowMs / MINUTE_MS) * MINUTE_MS;
  }

  /** The database read its clock between the call and its answer, however long that took: within, the clocks agree. */
  async #compareClocks(ask: () => Promise<number>): Promise<void> {
    const { wallMs } = this.#options;
    const askedAtMs = wallMs();
    const clockMs = await ask();
    const nearest = Math.min(Math.max(clockMs, askedAtMs), wallMs());
    this.#clockAheadMs = clockMs - nearest;
  }

  /** The minute is over. */
  #turn(): void {
    const { meter, gauges } = this.#options;
    const finished = this.#changes();
    if (finished) this.#left.push(finished.minutes);
    if (this.#left.length > MINUTES_KEPT_MAX) this.#left.shift();
    const queues = new Map<number, QueueMinute>();
    for (const queue of [...meter.queues.values()]) {
      const last = this.#queues.get(queue.id);
      const wasIdle = last !== undefined && isSame(QUEUE_COUNTERS, queue.counts, last.base);
      const idleMinutes = wasIdle ? last.idleMinutes + 1 : 0;
      if (queue.isGone || idleMinutes > QUEUE_IDLE_MINUTES_MAX) {
        meter.forget(queue.id);
        continue;
      }
      queue.ageMsMax = 0;
      queues.set(queue.id, {
        base: { ...queue.counts },
        written: { ...queue.counts },
        parked: 0,
        idleMinutes,
      });
    }
    this.#queues = queues;
    this.#workerBase = { ...meter.worker };
    this.#workerWritten = { ...meter.worker };
    meter.ageMsMax = 0;
    gauges.startOver();
    this.#minuteMs = this.#minuteNow();
  }

  async #flush(): Promise<void> {
    if (this.#minuteNow() !== this.#minuteMs) this.#turn();
    const changes = this.#changes();
    const left = this.#left;
    if (!changes && left.length === 0) return;
    const all = changes ? [...left, changes.minutes] : left;
    this.#left = [];
    try {
      await this.#compareClocks(() =>
        this.#options.save({
          workers: all.flatMap((minutes) => minutes.workers),
          queues: all.flatMap((minutes) => minutes.queues),
        }),
      );
      changes?.written();
    } catch (error) {
      this.#left = [...left, ...this.#left].slice(-MINUTES_KEPT_MAX);
      this.#options.log("metrics.not_written", error);
    }
  }

  /** What changed in this minute since it was written last; `written` notes that it is. */
  #changes(): { minutes: Minutes; written: () => void } | undefined {
    const { meter, gauges } = this.#options;
    const parked = this.#options.parked();
    const minute = new Date(this.#minuteMs).toISOString();
    const queues: Record<string, unknown>[] = [];
    const marks: (() => void)[] = [];
    for (const queue of meter.queues.values()) {
      const known = this.#queueMinute(queue);
      known.parked = Math.max(known.parked, parked.get(queue.id) ?? 0);
      if (isSame(QUEUE_COUNTERS, queue.counts, known.written)) continue;
      queues.push({
        minute,
        queue_id: queue.id,
        ...difference(QUEUE_COUNTERS, queue.counts, known.base),
        age_ms_max: queue.ageMsMax,
        parked: known.parked,
      });
      const counts = { ...queue.counts };
      marks.push(() => {
        known.written = counts;
      });
    }
    if (isSame(WORKER_COUNTERS, meter.worker, this.#workerWritten)) return undefined;
    const worker = { ...meter.worker };
    const base = this.#workerBase;
    const minutes: Minutes = {
      queues,
      workers: [
        {
          minute,
          ...difference(WORKER_COUNTERS, worker, base),
          age_ms_max: meter.ageMsMax,
          samples: gauges.samples,
          gauges: structuredClone(gauges.figures),
        },
      ],
    };
    const written = (): void => {
      for (const mark of marks) mark();
      // The minute may have turned meanwhile; then it counts from a base of its own.
      if (base === this.#workerBase) this.#workerWritten = worker;
    };
    return { minutes, written };
  }

  #queueMinute(queue: QueueMeter): QueueMinute {
    let known = this.#queues.get(queue.id);
    if (!known) {
      known = { base: zeros(QUEUE_COUNTERS), written: zeros(QUEUE_COUNTERS), parked: 0, idleMinutes: 0 };
      this.#queues.set(queue.id, known);
    }
    return known;
  }
}
