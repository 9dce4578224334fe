/** Consumer groups with how far they are behind. */
import { count, duration, groupName, queueName } from "../format.ts";
import { link } from "../router.ts";
import type { GroupRow } from "../types.ts";
import { Badge, Empty } from "./pieces.tsx";
import { Table } from "./table.tsx";

export function GroupTable({
  groups,
  isOfQueue = false,
}: {
  groups: readonly GroupRow[];
  isOfQueue?: boolean;
}) {
  if (groups.length === 0) {
    return (
      <div class="card">
        <Empty title="Nobody has read yet">
          <p>A group is there from its first pop on.</p>
        </Empty>
      </div>
    );
  }
  return (
    <Table label="Consumer groups">
      <thead>
        <tr>
          <th scope="col">Group</th>
          {!isOfQueue && <th scope="col">Queue</th>}
          <th scope="col" class="number">
            Unfinished
          </th>
          <th scope="col" class="number">
            Lag
          </th>
          <th scope="col" class="number wide">
            Lanes behind
          </th>
          <th scope="col" class="number wide">
            Lanes met
          </th>
          <th scope="col">State</th>
        </tr>
      </thead>
      <tbody>
        {groups.map((group) => (
          <tr key={`${group.queueName}\n${group.name}`}>
            <td>
              <a href={link(["groups", group.name, group.queueName])}>{groupName(group.name)}</a>
            </td>
            {!isOfQueue && (
              <td>
                <a href={link(["queues", group.queueName])}>{queueName(group.queueName)}</a>
              </td>
            )}
            <td class={group.totalLag === 0 ? "number zero" : "number"}>{count(group.totalLag)}</td>
            <td class={group.maxTimeLag === 0 ? "number zero" : "number"}>{duration(group.maxTimeLag)}</td>
            <td class="number wide">{count(group.partitionsWithLag)}</td>
            <td class="number wide">{count(group.members)}</td>
            <td>
              <GroupState state={group.state} />
            </td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}

/** As the broker calls them; a group that never consumed is "Dead" there. */
export function GroupState({ state }: { state: GroupRow["state"] }) {
  if (state === "Stable") return <Badge tone="good">keeps up</Badge>;
  return state === "Lagging" ? <Badge tone="warn">behind</Badge> : <Badge>never read</Badge>;
}
