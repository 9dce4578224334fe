/** What happened to the operations of one kind since the worker started. */
import { Distribution, DURATION_BOUNDS } from "../metering/distribution.ts";

export interface OperationFigures {
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

export class OperationStatistics {
  count = 0;
  items = 0;
  batches = 0;
  failures = 0;
  /** In seconds: from a request's arrival to its answer. */
  readonly durations: Distribution;
  /** In seconds: calls to PostgreSQL. */
  readonly databaseDurations = new Distribution(DURATION_BOUNDS);
  #waitMs = 0;
  #databaseMs = 0;
  #operationMs = 0;
  #operations = 0;
  #operationsMax = 0;

  constructor(durationBounds: readonly number[] = DURATION_BOUNDS) {
    this.durations = new Distribution(durationBounds);
  }

  batch(operations: number, waitMs: number, databaseMs: number): void {
    this.batches++;
    this.#operations += operations;
    this.#operationsMax = Math.max(this.#operationsMax, operations);
    this.#waitMs += waitMs;
    this.#databaseMs += databaseMs;
    this.databaseDurations.add(databaseMs / 1000);
  }

  /** One client request was answered. */
  answered(items: number, elapsedMs: number): void {
    this.count++;
    this.items += items;
    this.#operationMs += elapsedMs;
    this.durations.add(elapsedMs / 1000);
  }

  figures(pending: number, slotsBusy: number): OperationFigures {
    const per = (sum: number, count: number): number =>
      count === 0 ? 0 : Math.round((sum / count) * 1000) / 1000;
    return {
      count: this.count,
      items: this.items,
      batches: this.batches,
      failures: this.failures,
      avg_ms: per(this.#operationMs, this.count),
      wait_ms_avg: per(this.#waitMs, this.#operations),
      database_ms_avg: per(this.#databaseMs, this.batches),
      batch_operations_avg: per(this.#operations, this.batches),
      batch_operations_max: this.#operationsMax,
      pending,
      slots_busy: slotsBusy,
    };
  }
}
