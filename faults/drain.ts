/** Draining: after the last push, the load's consumers go on until there is nothing left for anybody. */
import { setTimeout as sleep } from "node:timers/promises";
import { until } from "@queen/test/support/moments";
import type { FaultRun } from "./fault-run.ts";

const EMPTY_SWEEPS = 3;
const ASK_EVERY_MS = 100;

// Places: a partition and a group that has not finished it.
const PLACES_LEFT = `
  select count(*)::int4 as left
    from unnest($1::text[], $2::text[]) as r (queue, name)
    join queen.queues q on q.name = r.queue join queen.partitions p on p.queue_id = q.id
    left join queen.consumer_groups g on g.queue_id = q.id and g.name = r.name
    left join queen.partition_consumers c on c.partition_id = p.id and c.group_id = g.id
   where p.next_offset > p.start_offset and c.committed is distinct from p.next_offset`;

/** Whether, in time, every group finished everything; then pops of all of them find nothing, several times. */
export async function drain(
  run: FaultRun,
  readers: readonly { readonly queue: string; readonly group: string }[],
  msMax: number,
): Promise<boolean> {
  const queues = readers.map((reader) => reader.queue);
  const groups = readers.map((reader) => reader.group);
  const isEmpty = async (): Promise<boolean> => {
    const [row] = await run.query(PLACES_LEFT, [queues, groups]);
    run.tell(`draining: ${row!.left} places to go`);
    await sleep(ASK_EVERY_MS);
    return row!.left === 0 && (await run.spooled()) === 0;
  };
  const isDrained = await until("everything is consumed", isEmpty, msMax).catch(() => false);
  if (!isDrained) return false;
  const client = run.client();
  for (let sweep = 0; sweep < EMPTY_SWEEPS; sweep++) {
    for (const { queue, group } of readers) {
      const { status } = await client.pop(queue, { consumerGroup: group });
      run.expect(status === 204, `a pop of ${group} in the drained ${queue} was answered ${status}`);
    }
  }
  return true;
}
