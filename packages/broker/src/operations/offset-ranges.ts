/**
 * Offset ranges: half-open, ascending, without touching neighbours; the broker's form of int8multirange.
 * `{[0,5),[7,9)}` in PostgreSQL's text is [0, 5, 7, 9] here.
 */
export type OffsetRanges = readonly number[];

export function parseRanges(text: string | null): OffsetRanges {
  if (text === null || text === "{}") return [];
  return text.slice(1, -1).match(/\d+/g)!.map(Number);
}

export function formatRanges(ranges: OffsetRanges): string {
  let text = "{";
  for (let at = 0; at < ranges.length; at += 2) {
    text += `${at === 0 ? "" : ","}[${ranges[at]},${ranges[at + 1]})`;
  }
  return `${text}}`;
}

export function inRanges(ranges: OffsetRanges, offset: number): boolean {
  for (let at = 0; at < ranges.length; at += 2) {
    if (offset < ranges[at]!) return false;
    if (offset < ranges[at + 1]!) return true;
  }
  return false;
}

/** How many of the offsets from `from` to before `to` are in the ranges. */
export function countWithin(ranges: OffsetRanges, from: number, to: number): number {
  let count = 0;
  for (let at = 0; at < ranges.length; at += 2) {
    count += Math.max(0, Math.min(ranges[at + 1]!, to) - Math.max(ranges[at]!, from));
  }
  return count;
}

/** Offsets from `from` to before `to`. */
export interface OffsetSpan {
  readonly from: number;
  readonly to: number;
}

/** The ranges that cover exactly these spans, given in any order, however they overlap. */
export function rangesOf(spans: readonly OffsetSpan[]): number[] {
  let sorted = spans;
  for (let at = 1; at < spans.length; at++) {
    if (spans[at - 1]!.from > spans[at]!.from) {
      sorted = spans.toSorted((a, b) => a.from - b.from);
      break;
    }
  }
  const ranges: number[] = [];
  for (const { from, to } of sorted) {
    if (from >= to) continue;
    const last = ranges.length - 1;
    if (last > 0 && ranges[last]! >= from) ranges[last] = Math.max(ranges[last]!, to);
    else ranges.push(from, to);
  }
  return ranges;
}
