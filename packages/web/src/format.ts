/** How figures, times and names are written. */
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const tenths = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export const count = (value: number): string => whole.format(value);

/** At most five characters or so, for large type. */
export const compact = (value: number): string =>
  value < 10_000 ? tenths.format(value) : short.format(value);

export const rate = (perSecond: number): string =>
  perSecond === 0
    ? "0"
    : perSecond < 0.1
      ? "< 0.1"
      : perSecond < 100
        ? tenths.format(perSecond)
        : whole.format(perSecond);

export function bytes(value: number): string {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let at = 0;
  while (value >= 1024 && at < units.length - 1) {
    value /= 1024;
    at += 1;
  }
  return `${value < 10 && at > 0 ? value.toFixed(1) : Math.round(value)} ${units[at]}`;
}

export function milliseconds(ms: number): string {
  if (ms < 1) return ms === 0 ? "0 ms" : "< 1 ms";
  return ms < 1000 ? `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms` : duration(ms / 1000);
}

export function duration(seconds: number): string {
  if (seconds < 1) return seconds <= 0 ? "0 s" : "< 1 s";
  if (seconds < 10) return `${tenths.format(seconds)} s`;
  const s = Math.round(seconds);
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min${s % 60 && s < 600 ? ` ${s % 60} s` : ""}`;
  if (s < 86_400)
    return `${Math.floor(s / 3600)} h${Math.floor((s % 3600) / 60) ? ` ${Math.floor((s % 3600) / 60)} min` : ""}`;
  return `${tenths.format(s / 86_400)} d`;
}

export const secondsSince = (time: string): number => Math.max(0, (Date.now() - Date.parse(time)) / 1000);

const two = (value: number): string => String(value).padStart(2, "0");

/** In the reader's own time zone. */
export function clock(time: string): string {
  const date = new Date(time);
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  const at = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  return day === localDay(new Date()) ? at : `${day} ${at}`;
}

const localDay = (date: Date): string =>
  `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;

export const QUEUE_MODE = "__QUEUE_MODE__";

/** Queue mode is a group without a name. */
export const groupName = (name: string): string => (name === QUEUE_MODE ? "queue mode" : name);
export const queueName = (name: string): string => (name === "" ? "(no name)" : name);

export const plural = (number: number, one: string, many = `${one}s`): string =>
  `${count(number)} ${number === 1 ? one : many}`;
