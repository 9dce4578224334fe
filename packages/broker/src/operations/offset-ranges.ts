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

/** The ranges that cover exactly these offsets, given in any order, with repetitions. */
export function rangesOf(offsets: readonly number[]): number[] {
  let sorted = offsets;
  for (let at = 1; at < offsets.length; at++) {
    if (offsets[at - 1]! >= offsets[at]!) {
      sorted = [...new Set(offsets)].sort((a, b) => a - b);
      break;
    }
  }
  const ranges: number[] = [];
  for (const offset of sorted) {
    if (ranges.length > 0 && ranges[ranges.length - 1] === offset) ranges[ranges.length - 1] = offset + 1;
    else ranges.push(offset, offset + 1);
  }
  return ranges;
}
