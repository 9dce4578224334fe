/** A lane's log from its first to its last message, and on it what each group has finished, holds and has before it. */
import { count, groupName, plural } from "../format.ts";
import type { LaneAnswer } from "../types.ts";

type Group = LaneAnswer["consumerGroups"][number];

export function LaneDrawing(props: {
  readonly lane: LaneAnswer;
  readonly chosen: string;
  readonly linkTo: (group: string) => string;
}) {
  const { lane, chosen, linkTo } = props;
  const { startOffset, nextOffset, consumerGroups } = lane;
  return (
    <div class="card lane">
      {consumerGroups.length === 0 && (
        <div class="track">
          <span>Nobody reads</span>
          <div class="log" />
          <span class="number">{plural(nextOffset - startOffset, "message")}</span>
        </div>
      )}
      {consumerGroups.map((group) => (
        <div key={group.name} class="track">
          <a href={linkTo(group.name)} aria-current={group.name === chosen ? "true" : undefined}>
            {groupName(group.name)}
          </a>
          <Track lane={lane} group={group} />
          <span class="number soft">
            {group.pending === 0 ? "all finished" : `${count(group.pending)} unfinished`}
          </span>
        </div>
      ))}
      <div class="track">
        <div class="scale">
          <span>{count(startOffset)}</span>
          <span>{count(nextOffset)}</span>
        </div>
      </div>
      <div class="key-of">
        <span>
          <i class="swatch done" aria-hidden="true" />
          finished
        </span>
        <span>
          <i class="swatch held" aria-hidden="true" />
          under a lease
        </span>
        <span>
          <i class="swatch waiting" aria-hidden="true" />
          waiting
        </span>
      </div>
    </div>
  );
}

function Track({ lane, group }: { lane: LaneAnswer; group: Group }) {
  const { startOffset, nextOffset } = lane;
  const { offset, finishedAhead, leasedUntil } = group;
  const length = Math.max(1, nextOffset - startOffset);
  const at = (place: number): number => (Math.min(Math.max(place - startOffset, 0), length) / length) * 100;
  const span = (from: number, to: number) => ({ left: `${at(from)}%`, width: `${at(to) - at(from)}%` });
  const words =
    `${groupName(group.name)} stands at ${count(offset)} of ${count(startOffset)} to ${count(nextOffset)}` +
    (leasedUntil === null ? "" : `, holds messages up to ${count(leasedUntil)}`);
  return (
    <div class="log" role="img" aria-label={words} title={words}>
      {leasedUntil !== null && leasedUntil > offset && <i class="held" style={span(offset, leasedUntil)} />}
      {offset > startOffset && <i class="done" style={span(startOffset, offset)} />}
      {finishedAhead.map(([from, to]) => (
        <i key={from} class="done" style={span(from, to)} />
      ))}
      {offset < nextOffset && <i class="cursor" style={{ left: `${at(offset)}%` }} />}
    </div>
  );
}
