/** All consumer groups of all queues. */
import { api } from "../api.ts";
import { useLive } from "../live.ts";
import { GroupTable } from "../parts/group-table.tsx";
import { OpenQueue } from "../parts/open-queue.tsx";
import { Head, Problem } from "../parts/pieces.tsx";
import { Search } from "../parts/search.tsx";
import { Pager } from "../parts/table.tsx";
import { change, place } from "../router.ts";
import type { GroupRow } from "../types.ts";

const PER_PAGE = 100;

export function Groups() {
  const { query } = place.value;
  const search = (query.get("search") ?? "").toLowerCase();
  const offset = Number(query.get("offset") ?? 0);
  const { body, error } = useLive<readonly GroupRow[]>(api(["consumer-groups"]));
  const groups = (body ?? [])
    .filter(({ name, queueName }) => `${name} ${queueName}`.toLowerCase().includes(search))
    .toSorted((a, b) => b.maxTimeLag - a.maxTimeLag || b.totalLag - a.totalLag);
  return (
    <>
      <Head title="Consumer groups">
        <Search label="Search groups and queues" />
      </Head>
      <Problem error={error} />
      {error && <OpenQueue />}
      {body && <GroupTable groups={groups.slice(offset, offset + PER_PAGE)} />}
      <Pager
        offset={offset}
        limit={PER_PAGE}
        total={groups.length}
        onPage={(to) => change({ offset: to || null })}
      />
    </>
  );
}
