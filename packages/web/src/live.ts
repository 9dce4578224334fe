/**
 * What the page shows and follows: one stream for all of it. It is opened anew when the view names other paths, and closed
 * while the tab is hidden.
 */
import { type Signal, signal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { BASE } from "./api.ts";

export interface Reading<T> {
  readonly body: T | undefined;
  /** How many there are in all, where the answer is a page of a list. */
  readonly total: number | null;
  readonly error: string | undefined;
}

interface Followed {
  readonly path: string;
  readonly reading: Signal<Reading<unknown>>;
  followers: number;
}

interface StreamEvent {
  readonly path: string;
  readonly status: number;
  readonly total: number | null;
  readonly body: unknown;
}

export type Connection = "idle" | "live" | "paused" | "lost";
export const connection = signal<Connection>("idle");

const NOTHING: Reading<unknown> = { body: undefined, total: null, error: undefined };
const RETRY_MS = 3_000;

const followed = new Map<string, Followed>();
let source: EventSource | undefined;
let opened = "";
let timer: ReturnType<typeof setTimeout> | undefined;
let onRefused: () => void = () => undefined;

/** Called when the broker may not know any more who follows. */
export const whenRefused = (listener: () => void): void => {
  onRefused = listener;
};

function settle(delayMs = 0): void {
  clearTimeout(timer);
  timer = setTimeout(open, delayMs);
}

function open(): void {
  const paths = [...followed.keys()].sort().join(" ");
  if (document.hidden || paths === "") {
    close();
    connection.value = document.hidden ? "paused" : "idle";
    return;
  }
  if (source && opened === paths && source.readyState !== EventSource.CLOSED) return;
  close();
  opened = paths;
  source = new EventSource(`${BASE}api/v1/stream?${new URLSearchParams({ follow: paths })}`);
  source.onopen = () => {
    connection.value = "live";
  };
  source.onmessage = ({ data }) => hear(JSON.parse(data));
  source.addEventListener("end", () => {
    close();
    onRefused();
  });
  source.onerror = () => {
    connection.value = "lost";
    if (source?.readyState !== EventSource.CLOSED) return; // it tries again by itself
    onRefused();
    settle(RETRY_MS);
  };
}

function close(): void {
  source?.close();
  source = undefined;
}

function hear({ path, status, total, body }: StreamEvent): void {
  const entry = followed.get(path);
  if (!entry) return;
  entry.reading.value =
    status < 400
      ? { body, total, error: undefined }
      : { ...entry.reading.value, error: (body as { error: string }).error };
}

document.addEventListener("visibilitychange", () => settle());

/** The latest answer of a GET route; undefined as a path follows nothing. Until another path answers, the last one's stays. */
export function useLive<T>(path: string | undefined): Reading<T> & { readonly isFresh: boolean } {
  const entry = useMemo<Followed | undefined>(() => {
    if (path === undefined) return undefined;
    return followed.get(path) ?? { path, reading: signal(NOTHING), followers: 0 };
  }, [path]);
  useEffect(() => {
    if (!entry) return;
    followed.set(entry.path, entry);
    entry.followers += 1;
    settle();
    return () => {
      entry.followers -= 1;
      if (entry.followers === 0) followed.delete(entry.path);
      settle();
    };
  }, [entry]);
  const last = useRef<Reading<unknown>>(NOTHING);
  const now = entry ? entry.reading.value : NOTHING;
  const isFresh = now.body !== undefined || now.error !== undefined;
  if (isFresh) last.current = now;
  return { ...((isFresh ? now : last.current) as Reading<T>), isFresh };
}
