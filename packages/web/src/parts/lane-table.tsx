/** The lanes of a queue, a page at a time; the broker sorts them, however many there are. */
import { count, duration, plural, secondsSince } from "../format.ts";
import { change, link } from "../router.ts";
import type { LaneRow } from "../types.ts";
import { Badge, Empty, Section, Time } from "./pieces.tsx";
import { Search } from "./search.tsx";
import { Pager, SortHead, Table } from "./table.tsx";

export type LaneSort = "name" | "depth" | "age" | "trouble";

export function LaneTable(props: {
  readonly queue: string;
  readonly sort: LaneSort;
  readonly offset: number;
  readonly lanes: readonly LaneRow[];
  readonly total: number;
  readonly perPage: number;
  readonly isFresh: boolean;
}) {
  const { queue, sort, offset, lanes, total, perPage, isFresh } = props;
  const head = { now: sort, onSort: (by: LaneSort) => change({ sort: by, offset: null }) };
  const deepest = Math.max(1, ...lanes.map(({ messages }) => messages.pending + messages.processing));
  return (
    <Section title="Lanes" note={plural(total, "lane")} actions={<Search label="Search lanes" />}>
      {lanes.length === 0 ? (
        <div class="card">
          <Empty title="No lane has this in its name" />
        </div>
      ) : (
        <Table label="Lanes" isBusy={!isFresh}>
          <thead>
            <tr>
              <SortHead by="name" {...head}>
                Lane
              </SortHead>
              <SortHead by="depth" {...head} isNumber>
                Unfinished
              </SortHead>
              <SortHead by="age" {...head} isNumber>
                Oldest waits
              </SortHead>
              <SortHead by="trouble" {...head} isNumber>
                Trouble
              </SortHead>
              <th scope="col" class="number wide">
                Processing
              </th>
              <th scope="col" class="number wide">
                In the log
              </th>
              <th scope="col" class="number wide">
                Last activity
              </th>
            </tr>
          </thead>
          <tbody>
            {lanes.map((lane) => (
              <Row key={lane.id} queue={queue} lane={lane} deepest={deepest} />
            ))}
          </tbody>
        </Table>
      )}
      <Pager offset={offset} limit={perPage} total={total} onPage={(to) => change({ offset: to || null })} />
    </Section>
  );
}

function Row({ queue, lane, deepest }: { queue: string; lane: LaneRow; deepest: number }) {
  const { name, messages, oldestPending, retrying, lastActivity } = lane;
  const depth = messages.pending + messages.processing;
  return (
    <tr>
      <td>
        <a href={link(["queues", queue, "lanes", name])}>{name}</a>
      </td>
      <td class={depth === 0 ? "number zero" : "number"}>
        {count(depth)}
        <span class={depth === 0 ? "bars wide none" : "bars wide"} aria-hidden="true">
          <i style={{ width: `${(depth / deepest) * 100}%` }} />
        </span>
      </td>
      <td class="number">{oldestPending === null ? "" : duration(secondsSince(oldestPending))}</td>
      <td class="number">
        {retrying > 0 && <Badge tone="warn">{count(retrying)} retrying</Badge>}{" "}
        {messages.deadLetter > 0 && <Badge tone="bad">{count(messages.deadLetter)} dead</Badge>}
      </td>
      <td class={messages.processing === 0 ? "number zero wide" : "number wide"}>
        {count(messages.processing)}
      </td>
      <td class="number wide">{count(messages.total)}</td>
      <td class="number wide">
        <Time at={lastActivity} isAge />
      </td>
    </tr>
  );
}
