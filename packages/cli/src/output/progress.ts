/**
 * Progress of something long: a bar on a terminal, plain lines elsewhere, always on standard error.
 *
 *   push  ████████████▌            52 %  5,200 of 10,000 messages  8,112/s  1 s left
 *   push: 5,200 of 10,000 messages (52 %), 8,112/s
 */
export interface ProgressOptions {
  readonly label: string;
  readonly unit: string;
  /** Undefined: nobody knows. */
  readonly total?: number | undefined;
  /** What was done before it began: it counts for the bar and not for the speed. */
  readonly from?: number;
  /** What is counted is time itself, which has no speed. */
  readonly isTime?: boolean;
}

const DRAW_EVERY_MS = 100;
const LINE_EVERY_MS = 2_000;
const BAR_CELLS = 24;
const PARTS = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
const CLEAR_LINE = "\r\u001b[2K";

export class Progress {
  readonly #label: string;
  readonly #unit: string;
  readonly #isTerminal = process.stderr.isTTY === true;
  readonly #startedMs = performance.now();
  readonly #from: number;
  readonly #isTime: boolean;
  #total: number | undefined;
  #done: number;
  #shownMs = Number.NEGATIVE_INFINITY;

  constructor({ label, unit, total, from = 0, isTime = false }: ProgressOptions) {
    this.#isTime = isTime;
    this.#label = label;
    this.#from = this.#done = from;
    this.#unit = unit;
    this.#total = total;
    if (!this.#isTerminal) this.#shownMs = this.#startedMs; // the first line comes when it turns out to be long
  }

  get done(): number {
    return this.#done;
  }

  /** So much is done in all. */
  to(done: number, total = this.#total): void {
    this.#done = done;
    this.#total = total;
    const nowMs = performance.now();
    if (nowMs - this.#shownMs < (this.#isTerminal ? DRAW_EVERY_MS : LINE_EVERY_MS)) return;
    this.#shownMs = nowMs;
    this.#show();
  }

  add(count: number): void {
    this.to(this.#done + count);
  }

  /** Says how it ended; on a terminal the last bar stays. */
  finish(): void {
    this.#show();
    if (this.#isTerminal) process.stderr.write("\n");
  }

  /** Makes room for something else to be said. */
  clear(): void {
    if (this.#isTerminal) process.stderr.write(CLEAR_LINE);
  }

  #show(): void {
    if (this.#isTerminal) {
      const columns = process.stderr.columns ?? 80;
      process.stderr.write(CLEAR_LINE + this.bar().slice(0, columns - 1));
    } else process.stderr.write(`${this.plain()}\n`);
  }

  bar(): string {
    if (this.#total === undefined) return `${this.#label}  ${this.#counted()}${this.#speed("  ")}`;
    const share = this.#share();
    const cells = share * BAR_CELLS;
    const full = Math.floor(cells);
    const bar = ("█".repeat(full) + (PARTS[Math.floor((cells - full) * 8)] ?? "")).padEnd(BAR_CELLS);
    return `${this.#label}  ${bar}  ${this.#percent().padStart(5)}  ${this.#counted()}${this.#speed("  ")}${this.#left()}`;
  }

  plain(): string {
    const percent = this.#total === undefined ? "" : ` (${this.#percent()})`;
    return `${this.#label}: ${this.#counted()}${percent}${this.#speed(", ")}`;
  }

  #share(): number {
    return this.#total === 0 ? 1 : Math.min(1, this.#done / this.#total!);
  }

  #percent(): string {
    return `${Math.floor(this.#share() * 100)} %`;
  }

  #counted(): string {
    const of = this.#total === undefined ? "" : ` of ${number(this.#total)}`;
    return `${number(this.#done)}${of} ${this.#unit}`;
  }

  #perSecond(): number {
    const seconds = Math.max((performance.now() - this.#startedMs) / 1_000, 0.001);
    return (this.#done - this.#from) / seconds;
  }

  #speed(separator: string): string {
    return this.#isTime ? "" : `${separator}${number(Math.round(this.#perSecond()))}/s`;
  }

  #left(): string {
    const perSecond = this.#perSecond();
    if (this.#isTime || perSecond <= 0 || this.#done >= this.#total!) return "";
    return `  ${duration(Math.ceil((this.#total! - this.#done) / perSecond))} left`;
  }
}

const number = (value: number): string => value.toLocaleString("en-US");

function duration(seconds: number): string {
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3_600)} h ${Math.floor((seconds % 3_600) / 60)} min`;
}
