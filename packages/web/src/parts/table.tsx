/** Tables: they scroll sideways where there is no room, and their heads sort. */
import type { ComponentChildren } from "preact";
import { count } from "../format.ts";

export function Table(props: {
  readonly label: string;
  readonly isBusy?: boolean;
  readonly children: ComponentChildren;
}) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <section class="table" aria-label={props.label} tabIndex={0} aria-busy={props.isBusy ?? false}>
      <table>{props.children}</table>
    </section>
  );
}

/** The head of a column by which the rows can be sorted. */
export function SortHead<T extends string>(props: {
  readonly by: T;
  readonly now: T;
  readonly onSort: (by: T) => void;
  readonly isNumber?: boolean;
  readonly class?: string;
  readonly children: ComponentChildren;
}) {
  const { by, now, onSort, isNumber, children } = props;
  const isNow = by === now;
  const direction = isNumber ? "descending" : "ascending";
  return (
    <th
      scope="col"
      class={`${isNumber ? "number" : ""} ${props.class ?? ""}`}
      aria-sort={isNow ? direction : "none"}
    >
      <button type="button" class={isNow ? "sort now" : "sort"} onClick={() => onSort(by)}>
        {children}
        <span aria-hidden="true">{isNow ? (isNumber ? "↓" : "↑") : ""}</span>
      </button>
    </th>
  );
}

export function Pager(props: {
  readonly offset: number;
  readonly limit: number;
  readonly total: number;
  readonly onPage: (offset: number) => void;
}) {
  const { offset, limit, total, onPage } = props;
  if (total <= limit && offset === 0) return null;
  const last = Math.max(0, Math.floor((total - 1) / limit) * limit);
  return (
    <nav class="pager" aria-label="Pages">
      <span class="soft">
        {count(Math.min(offset + 1, total))}–{count(Math.min(offset + limit, total))} of {count(total)}
      </span>
      <button type="button" class="small" disabled={offset === 0} onClick={() => onPage(0)}>
        First
      </button>
      <button
        type="button"
        class="small"
        disabled={offset === 0}
        onClick={() => onPage(Math.max(0, offset - limit))}
      >
        Previous
      </button>
      <button type="button" class="small" disabled={offset >= last} onClick={() => onPage(offset + limit)}>
        Next
      </button>
      <button type="button" class="small" disabled={offset >= last} onClick={() => onPage(last)}>
        Last
      </button>
    </nav>
  );
}
