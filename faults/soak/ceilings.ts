/**
 * Ceilings are what a soak must stay below. They are pure: minutes in, sentences out, each of which says what was
 * too much. What has to settle first is looked at from the middle of the run on, and only where it is long enough.
 */
import { HOT_TABLES, hotRatio, type Minute } from "./minute.ts";

export interface Plan {
  readonly retentionSeconds: number;
  readonly sweepSeconds: number;
}

export interface IndexSize {
  readonly name: string;
  readonly bytes: number;
  /** After it was built anew. */
  readonly freshBytes: number;
}

const PROCESS_MB_MAX = 400;
const SLOPE_MB_PER_HOUR_MAX = 1;
const GROWTH_MAX = 1.2;
// What a process or a table may be larger by without being said to grow.
const MEMORY_SLACK_MB = 20;
const TABLE_SLACK_BYTES = 2 * 1024 ** 2;
const HEAP_CHANGE_MAX = 0.1;
const FILES_SLACK = 20;
const LOG_SHARE_OFF_MAX = 0.2;
const HOT_TABLE_FACTOR_MAX = 3;
const SMALL_BYTES = 1024 ** 2;
const HOT_RATIO_MIN = 0.95;
const DEAD_SHARE_MAX = 0.2;
// Of fewer rows a few dead ones are a large share; HOT_TABLE_FACTOR_MAX bounds what they cost.
const DEAD_ROWS_LIVE_MIN = 10_000;
const XIDS_PER_CALL_MAX = 1.2;
const MULTIXACTS_PER_CALL_MAX = 0.001;
const MULTIXACTS_FREE = 100;
const INDEX_FACTOR_MAX = 2;
const SMALL_INDEX_BYTES = 512 * 1024;
const PAGE_BYTES = 8_192;
const MINUTES_MIN = 20;
const HOUR = 60;
// These keep a history on purpose.
const GROWING_TABLES = ["dead_letters", "worker_minutes", "queue_minutes", "audit_log", "retention_history"];

export function brokenCeilings(minutes: readonly Minute[], plan: Plan): string[] {
  const last = minutes.at(-1);
  if (!last) return [];
  return [
    ...memory(minutes),
    ...log(minutes, plan),
    ...tables(minutes),
    ...deadRows(minutes),
    ...identifiers(minutes),
  ];
}

/** The log's index is ordered by lane: of each lane the first and the last page are half empty, whatever is done. */
export const brokenIndexes = (indexes: readonly IndexSize[], lanes: number): string[] =>
  indexes
    .filter(
      ({ bytes, freshBytes }) =>
        bytes > SMALL_INDEX_BYTES && bytes > (freshBytes + lanes * PAGE_BYTES) * INDEX_FACTOR_MAX,
    )
    .map(
      ({ name, bytes, freshBytes }) =>
        `the index ${name} has ${bytes} bytes, ${freshBytes} when built anew; ${INDEX_FACTOR_MAX} times that and a page ` +
        "for each lane are the most",
    );

function memory(minutes: readonly Minute[]): string[] {
  const found: string[] = [];
  const most = Math.max(...minutes.flatMap(({ brokers }) => brokers.map(({ processMb }) => processMb)));
  if (most > PROCESS_MB_MAX)
    found.push(`a process of a broker had ${Math.round(most)} MB; ${PROCESS_MB_MAX} are the most`);
  if (minutes.length < MINUTES_MIN) return found;
  const veteran = minutes.map(({ brokers }) => brokers[0]!);
  const half = veteran.slice(Math.floor(veteran.length / 2));
  const [before, after] = halves(half.map(({ memoryMb }) => memoryMb)).map(mean) as [number, number];
  if (after > before * GROWTH_MAX + MEMORY_SLACK_MB)
    found.push(
      `the broker that is never killed grows: ${Math.round(before)} MB on average in the third quarter of the run, ` +
        `${Math.round(after)} MB in the last`,
    );
  const [firstFiles, lastFiles] = halves(half.map(({ files }) => files)).map((files) =>
    Math.max(...files),
  ) as [number, number];
  if (lastFiles > firstFiles + FILES_SLACK)
    found.push(`the broker that is never killed had ${firstFiles} files open at most, then ${lastFiles}`);
  const settled = veteran.slice(HOUR);
  if (settled.length >= HOUR) {
    const slope = slopeOf(settled.map(({ memoryMb }) => memoryMb)) * HOUR;
    if (slope > SLOPE_MB_PER_HOUR_MAX)
      found.push(
        `the broker that is never killed grows by ${slope.toFixed(1)} MB an hour after the first; ` +
          `${SLOPE_MB_PER_HOUR_MAX} is the most`,
      );
    const [heapBefore, heapAfter] = halves(settled.map(({ heapMb }) => heapMb)).map(mean) as [number, number];
    if (Math.abs(heapAfter / heapBefore - 1) > HEAP_CHANGE_MAX)
      found.push(
        `its heap after collections went from ${heapBefore.toFixed(1)} to ${heapAfter.toFixed(1)} MB; ` +
          `${100 * HEAP_CHANGE_MAX} % is the most`,
      );
  }
  return found;
}

/** The log holds what retention keeps. */
function log(minutes: readonly Minute[], { retentionSeconds, sweepSeconds }: Plan): string[] {
  // Whole minutes that surely are in the log, and those that may be there yet; groups may have got no further.
  const kept = Math.floor(retentionSeconds / 60);
  const leaving = Math.ceil((retentionSeconds + 2 * sweepSeconds) / 60) + 1;
  const found: string[] = [];
  for (const [index, { minute, logMessages, lag, spooled }] of minutes.entries()) {
    if (index < leaving) continue;
    const pushedIn = (count: number): number =>
      minutes.slice(index + 1 - count, index + 1).reduce((sum, { pushed }) => sum + pushed, 0);
    const most = pushedIn(leaving) * (1 + LOG_SHARE_OFF_MAX) + lag;
    const least = pushedIn(kept) * (1 - LOG_SHARE_OFF_MAX) - spooled;
    if (logMessages > most || logMessages < least)
      found.push(
        `the log had ${logMessages} messages in minute ${minute}; by its retention of ${retentionSeconds} s it should ` +
          `have ${Math.round(least)} to ${Math.round(most)}`,
      );
  }
  return found.slice(0, 1);
}

function tables(minutes: readonly Minute[]): string[] {
  const found: string[] = [];
  const last = minutes.at(-1)!;
  for (const name of HOT_TABLES) {
    const { tableBytes } = last.tables[name]!;
    const live = last.liveBytes[name]!;
    if (tableBytes > Math.max(SMALL_BYTES, live * HOT_TABLE_FACTOR_MAX))
      found.push(
        `${name} has ${tableBytes} bytes for rows of ${Math.round(live)}; ${HOT_TABLE_FACTOR_MAX} times is the most`,
      );
  }
  const ratio = hotRatio(last);
  if (ratio < HOT_RATIO_MIN)
    found.push(`${(100 * ratio).toFixed(1)} % of updates were HOT; ${100 * HOT_RATIO_MIN} % are the least`);
  if (minutes.length < MINUTES_MIN) return found;
  const [before, after] = halves(minutes.slice(Math.floor(minutes.length / 2))) as [Minute[], Minute[]];
  const most = (part: readonly Minute[], name: string): number =>
    Math.max(...part.map(({ tables }) => (tables[name]?.tableBytes ?? 0) + (tables[name]?.indexBytes ?? 0)));
  for (const name of Object.keys(last.tables)) {
    if (GROWING_TABLES.includes(name)) continue;
    if (most(after, name) > most(before, name) * GROWTH_MAX + TABLE_SLACK_BYTES)
      found.push(
        `${name} grows: ${most(before, name)} bytes in the third quarter of the run, ${most(after, name)} in the last`,
      );
  }
  return found;
}

/** A minute after a vacuum, and not much later: then the next one may be due. */
function deadRows(minutes: readonly Minute[]): string[] {
  for (const { minute, tables } of minutes) {
    for (const [name, { live, dead, vacuumedSecondsAgo }] of Object.entries(tables)) {
      if (vacuumedSecondsAgo === null || vacuumedSecondsAgo < 30 || vacuumedSecondsAgo > 90) continue;
      if (live >= DEAD_ROWS_LIVE_MIN && dead > (live + dead) * DEAD_SHARE_MAX)
        return [
          `${name} had ${dead} dead rows beside ${live} in minute ${minute}, a minute after it was vacuumed; ` +
            `${100 * DEAD_SHARE_MAX} % are the most`,
        ];
    }
  }
  return [];
}

function identifiers(minutes: readonly Minute[]): string[] {
  const found: string[] = [];
  const last = minutes.at(-1)!;
  if (last.xids > last.calls * XIDS_PER_CALL_MAX)
    found.push(
      `${last.xids} transaction ids were used for ${last.calls} calls; ${XIDS_PER_CALL_MAX} a call are the most`,
    );
  if (last.multixacts > MULTIXACTS_FREE + last.calls * MULTIXACTS_PER_CALL_MAX)
    found.push(
      `${last.multixacts} multixacts were used for ${last.calls} calls; there should be next to none`,
    );
  if (last.catalogRows > minutes[0]!.catalogRows)
    found.push(
      `pg_attribute grew from ${minutes[0]!.catalogRows} to ${last.catalogRows} rows; it should not grow`,
    );
  return found;
}

function halves<T>(list: readonly T[]): [T[], T[]] {
  const middle = Math.floor(list.length / 2);
  return [list.slice(0, middle), list.slice(middle)];
}

const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);

/** Of the straight line that fits best, per step. */
function slopeOf(values: readonly number[]): number {
  const middle = (values.length - 1) / 2;
  const average = mean(values);
  let covariance = 0;
  let variance = 0;
  for (const [index, value] of values.entries()) {
    covariance += (index - middle) * (value - average);
    variance += (index - middle) ** 2;
  }
  return variance === 0 ? 0 : covariance / variance;
}
