/** Times as the wire shows them, from PostgreSQL's microseconds since 2000-01-01 UTC. */
const EPOCH_2000_MS = 946_684_800_000;

let lastMs = Number.NaN;
let lastText = "";

/** `2026-11-15T19:23:37.452917Z`. Neighbouring messages mostly share their millisecond. */
export function isoMicroseconds(us: number): string {
  const ms = Math.floor(us / 1000);
  if (ms !== lastMs) {
    lastMs = ms;
    lastText = new Date(EPOCH_2000_MS + ms).toISOString().slice(0, 23);
  }
  return `${lastText}${String(us - ms * 1000).padStart(3, "0")}Z`;
}

/** `2026-11-15T19:23:37.452Z`. */
export const isoMilliseconds = (us: number): string =>
  new Date(EPOCH_2000_MS + Math.floor(us / 1000)).toISOString();

/** `2026-11-15T19:23:37Z`. */
export const isoSeconds = (us: number): string => `${isoMilliseconds(us).slice(0, 19)}Z`;

export const unixMilliseconds = (us: number): number => EPOCH_2000_MS + us / 1000;
