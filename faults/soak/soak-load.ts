/** A soak's load is what its clients share: the job, the figures, and the check that looks at all events. */
import type { HistoryEvent } from "@queen/test/checker/history";
import { OnlineCheck } from "@queen/test/checker/online-check";
import { randomFrom } from "@queen/test/support/load";
import { GROUPS, QUEUE, type SoakShape } from "./shape.ts";

export interface Job {
  readonly shape: SoakShape;
  readonly urls: readonly string[];
  readonly seed: number;
}

export interface Figures {
  stored: number;
  buffered: number;
  delivered: number;
  acked: number;
  /** Answers by operation and status; 0: the connection broke. */
  requests: Record<string, number>;
  redelivered: number;
  /** What the check remembers, and what it found. */
  remembered: number;
  violations: number;
  /** What an answer said that no fault excuses. */
  surprises: string[];
  memoryMb: number;
}

// Generous on purpose: a verdict must not depend on how busy the machine is.
const REQUEST_MS_MAX = 30_000;
// While the rate is looked for: so many messages of a group may be waiting before producers pause.
const BACKLOG_MAX = 50_000;
const SURPRISES_MAX = 5;

export class SoakLoad {
  readonly shape: SoakShape;
  readonly urls: readonly string[];
  readonly seed: number;
  readonly check = new OnlineCheck(
    GROUPS.map((group) => ({ queue: QUEUE, group })),
    { requestMsMax: REQUEST_MS_MAX },
  );
  readonly figures: Figures = {
    stored: 0,
    buffered: 0,
    delivered: 0,
    acked: 0,
    requests: {},
    redelivered: 0,
    remembered: 0,
    violations: 0,
    surprises: [],
    memoryMb: 0,
  };
  ratePerSecond: number | null = null;
  /** No new pushes. */
  isEnough = false;
  /** Nothing at all any more. */
  isOver = false;

  constructor({ shape, urls, seed }: Job) {
    this.shape = shape;
    this.urls = urls;
    this.seed = seed;
  }

  random(index: number): () => number {
    return randomFrom(this.seed * 1_000 + index);
  }

  observe(event: HistoryEvent): void {
    this.check.observe(event);
  }

  /** Whether consumers are so far behind that faster pushes would say nothing. */
  get isAhead(): boolean {
    return this.figures.stored - this.figures.acked / GROUPS.length > BACKLOG_MAX;
  }

  surprise(text: string): void {
    if (this.figures.surprises.length < SURPRISES_MAX) this.figures.surprises.push(text);
  }

  /** The figures, with what the check says. */
  read(): Figures {
    const { figures, check } = this;
    figures.redelivered = check.redelivered;
    figures.remembered = check.remembered;
    figures.violations = [...check.counts.values()].reduce((sum, count) => sum + count, 0);
    figures.memoryMb = process.memoryUsage.rss() / 1024 ** 2;
    return figures;
  }
}
