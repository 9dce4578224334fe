/** Where the page is: a path and a query behind the `#` of the address, so that every view can be shared. */
import { signal } from "@preact/signals";

export interface Place {
  /** The parts of the path, decoded. */
  readonly parts: readonly string[];
  readonly query: URLSearchParams;
}

type Query = Readonly<Record<string, string | number | boolean | null | undefined>>;

const read = (): Place => {
  const [path = "", search = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  return { parts: path.split("/").map(decode), query: new URLSearchParams(search) };
};

export const place = signal<Place>(read());

addEventListener("hashchange", () => {
  place.value = read();
});

/** The address of a view. What is null, false or empty is left out of the query. */
export function link(parts: readonly string[], query: Query = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== false && value !== "")
      search.set(name, String(value));
  }
  const path = `#/${parts.map(encodeURIComponent).join("/")}`;
  return search.size === 0 ? path : `${path}?${search}`;
}

export function go(parts: readonly string[], query: Query = {}): void {
  location.hash = link(parts, query);
}

/** Changes the query of this view; the way back does not lead through each change. */
export function change(query: Query): void {
  const { parts, query: now } = place.value;
  history.replaceState(null, "", link(parts, { ...Object.fromEntries(now), ...query }));
  place.value = read();
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
