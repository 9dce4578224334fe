/** Numbers as people read them. */
export const thousands = (value: number): string => Math.round(value).toLocaleString("en");

export const milliseconds = (value: number | null | undefined): string =>
  value === null || value === undefined ? "" : value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0);

/** Three digits that count. */
export function number(value: number | null | undefined): string {
  if (value === null || value === undefined) return "";
  return Math.abs(value) >= 100 ? thousands(value) : String(Number(value.toPrecision(3)));
}

/** As short as a chart needs it: 1,000,000 is 1M. */
export function short(value: number): string {
  for (const [unit, size] of [
    ["M", 1_000_000],
    ["k", 1_000],
  ] as const) {
    if (Math.abs(value) >= size) return `${Number((value / size).toPrecision(3))}${unit}`;
  }
  return String(Number(value.toPrecision(3)));
}
