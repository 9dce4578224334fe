/**
 * Gauges are what a worker has at a moment: free slots, waiting operations, memory, processor time, the lag of its event
 * loop. They are sampled every second; of a stretch of samples the sum, the least, the most and the last are kept.
 */
import { readFileSync } from "node:fs";
import { type IntervalHistogram, monitorEventLoopDelay } from "node:perf_hooks";

/** What the parts of a worker say of themselves. */
export interface WorkerState {
  readonly freeSlots: number;
  readonly operationsWaiting: number;
  readonly slots: number;
  readonly secondaryConnections: number;
  readonly secondaryWaiting: number;
  readonly poolSize: number;
  readonly poolIdle: number;
  readonly poolActive: number;
  readonly requestsActive: number;
  readonly busPeers: number;
}

export interface GaugeFigures {
  readonly sum: number;
  readonly min: number;
  readonly max: number;
  readonly last: number;
}

export type GaugeName =
  | "event_loop_lag_ms"
  | "free_slots"
  | "job_queue"
  | "slots"
  | "secondary_connections"
  | "secondary_waiting"
  | "pool_size"
  | "pool_idle"
  | "pool_active"
  | "requests_active"
  | "bus_peers"
  | "cpu_user_us"
  | "cpu_system_us"
  | "rss_bytes"
  | "virtual_bytes";

export type Gauges = Partial<Record<GaugeName, GaugeFigures>>;

// Often enough to see a pause of some milliseconds, and nothing that a processor notices.
const LOOP_RESOLUTION_MS = 20;
const NANOSECONDS = 1e6;
const PAGE_BYTES = 4096;

export class GaugeSampler {
  readonly #state: () => WorkerState;
  readonly #now: () => number;
  readonly #loop: IntervalHistogram = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS });
  #cpu = process.cpuUsage();
  #sampledAtMs: number;
  #figures: Partial<Record<GaugeName, { sum: number; min: number; max: number; last: number }>> = {};
  #samples = 0;
  #lagMsMax = 0;
  #lagMsMaxBefore = 0;

  constructor(state: () => WorkerState, now: () => number) {
    this.#state = state;
    this.#now = now;
    this.#sampledAtMs = now();
    this.#loop.enable();
  }

  get samples(): number {
    return this.#samples;
  }

  get figures(): Gauges {
    return this.#figures;
  }

  /** The longest pause of the event loop in the last one to two stretches, so that no reader misses one. */
  get lagMsMax(): number {
    return Math.max(this.#lagMsMax, this.#lagMsMaxBefore);
  }

  get lagMsAverage(): number {
    const lag = this.#figures.event_loop_lag_ms;
    return lag ? lag.sum / this.#samples : 0;
  }

  sample(): void {
    const state = this.#state();
    const seconds = Math.max(0.001, (this.#now() - this.#sampledAtMs) / 1000);
    this.#sampledAtMs = this.#now();
    const cpu = process.cpuUsage();
    this.#samples++;
    this.#addLag();
    this.#add("free_slots", state.freeSlots);
    this.#add("job_queue", state.operationsWaiting);
    this.#add("slots", state.slots);
    this.#add("secondary_connections", state.secondaryConnections);
    this.#add("secondary_waiting", state.secondaryWaiting);
    this.#add("pool_size", state.poolSize);
    this.#add("pool_idle", state.poolIdle);
    this.#add("pool_active", state.poolActive);
    this.#add("requests_active", state.requestsActive);
    this.#add("bus_peers", state.busPeers);
    this.#add("cpu_user_us", Math.round((cpu.user - this.#cpu.user) / seconds));
    this.#add("cpu_system_us", Math.round((cpu.system - this.#cpu.system) / seconds));
    this.#add("rss_bytes", process.memoryUsage.rss());
    this.#add("virtual_bytes", virtualBytes());
    this.#cpu = cpu;
  }

  /** A new stretch begins. */
  startOver(): void {
    this.#figures = {};
    this.#samples = 0;
    this.#lagMsMaxBefore = this.#lagMsMax;
    this.#lagMsMax = 0;
  }

  stop(): void {
    this.#loop.disable();
  }

  #addLag(): void {
    const [mean, max] = this.#loop.count === 0 ? [0, 0] : [this.#loop.mean, this.#loop.max];
    this.#loop.reset();
    const late = (ns: number): number => Math.max(0, ns / NANOSECONDS - LOOP_RESOLUTION_MS);
    this.#add("event_loop_lag_ms", late(mean));
    const lag = this.#figures.event_loop_lag_ms!;
    lag.max = Math.max(lag.max, late(max));
    this.#lagMsMax = Math.max(this.#lagMsMax, late(max));
  }

  #add(name: GaugeName, value: number): void {
    const known = this.#figures[name];
    if (!known) {
      this.#figures[name] = { sum: value, min: value, max: value, last: value };
      return;
    }
    known.sum += value;
    known.min = Math.min(known.min, value);
    known.max = Math.max(known.max, value);
    known.last = value;
  }
}

/** What the process has reserved of its address space, where Linux says so; 0 elsewhere. */
export function virtualBytes(): number {
  try {
    return Number(readFileSync("/proc/self/statm", "latin1").split(" ")[0]) * PAGE_BYTES;
  } catch {
    return 0;
  }
}
