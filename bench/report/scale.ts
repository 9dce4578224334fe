/** A scale maps values to pixels, and knows the values that deserve a line in the grid. */
export interface Scale {
  readonly ticks: readonly number[];
  at(value: number): number;
}

const TICKS_WANTED = 4;

/** From 0 to at least the largest value. */
export function linearScale(largest: number, from: number, to: number): Scale {
  const step = niceStep(largest / TICKS_WANTED);
  const count = Math.max(1, Math.ceil(largest / step - 1e-9));
  return {
    ticks: Array.from({ length: count + 1 }, (_, index) => Number((index * step).toPrecision(12))),
    at: (value) => from + ((to - from) * value) / (count * step),
  };
}

/** Over whole decades that hold all values; what is not above 0 stands at the beginning. */
export function logScale(smallest: number, largest: number, from: number, to: number): Scale {
  const low = Math.floor(Math.log10(smallest) + 1e-9);
  const high = Math.max(low + 1, Math.ceil(Math.log10(largest) - 1e-9));
  return {
    ticks: Array.from({ length: high - low + 1 }, (_, index) => 10 ** (low + index)),
    at: (value) => (value > 0 ? from + ((to - from) * (Math.log10(value) - low)) / (high - low) : from),
  };
}

/** 1, 2 or 5 times a power of ten, not below the value. */
function niceStep(value: number): number {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  const factor = [1, 2, 5, 10].find((candidate) => candidate * power >= value * (1 - 1e-9)) ?? 10;
  return factor * power;
}
