/** A distribution counts values by size, in buckets that are fixed beforehand: cheap to add to, and to sum up. */
export interface DistributionFigures {
  /** Upper ends of the buckets, each included; one more bucket is for everything above. */
  readonly bounds: readonly number[];
  readonly counts: readonly number[];
  readonly sum: number;
}

export class Distribution {
  readonly #bounds: readonly number[];
  readonly #counts: number[];
  #sum = 0;

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = new Array<number>(bounds.length + 1).fill(0);
  }

  /** Adds a value, as often as `count` says. */
  add(value: number, count = 1): void {
    let bucket = 0;
    while (bucket < this.#bounds.length && value > this.#bounds[bucket]!) bucket++;
    this.#counts[bucket]! += count;
    this.#sum += value * count;
  }

  figures(): DistributionFigures {
    return { bounds: this.#bounds, counts: [...this.#counts], sum: this.#sum };
  }
}

/** In seconds: what a call to a database next door takes, up to a statement's timeout. */
export const DURATION_BOUNDS = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
];

/** In seconds: a pop waits up to a minute or so. */
export const WAIT_BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/** In seconds: a message is delivered at once, or after a night. */
export const AGE_BOUNDS = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 15, 60, 300, 900, 3600, 21_600, 86_400,
];
