/** All queues: sorted and paged by the broker. */
import { useState } from "preact/hooks";
import { api, post } from "../api.ts";
import { count, duration, queueName, rate } from "../format.ts";
import { useLive } from "../live.ts";
import { Dialog } from "../parts/dialog.tsx";
import { attempt } from "../parts/notices.tsx";
import { OpenQueue } from "../parts/open-queue.tsx";
import { Allowed, Empty, Head, Problem } from "../parts/pieces.tsx";
import { Search } from "../parts/search.tsx";
import { Pager, SortHead, Table } from "../parts/table.tsx";
import { change, go, link, place } from "../router.ts";
import type { QueueRow } from "../types.ts";

const SORTS = ["name", "depth", "lag", "in", "out", "deadLetters", "partitions"] as const;
type Sort = (typeof SORTS)[number];
const PER_PAGE = 50;

export function Queues() {
  const { query } = place.value;
  const sort = SORTS.find((each) => each === query.get("sort")) ?? "name";
  const offset = Number(query.get("offset") ?? 0);
  const search = query.get("search") ?? "";
  const { body, total, error, isFresh } = useLive<{ queues: readonly QueueRow[] }>(
    api(["resources", "queues"], { sort, search, limit: PER_PAGE, offset: offset || null }),
  );
  const [isMaking, setMaking] = useState(false);
  const onSort = (by: Sort): void => change({ sort: by, offset: null });
  const head = { now: sort, onSort };
  return (
    <>
      <Head title="Queues">
        <Search label="Search queues" />
        <Allowed to="write">
          <button type="button" class="primary" onClick={() => setMaking(true)}>
            New queue
          </button>
        </Allowed>
      </Head>
      <Problem error={error} />
      {error && <OpenQueue />}
      {body && body.queues.length === 0 && (
        <div class="card">
          <Empty title={search ? "No queue has this in its name" : "There are no queues yet"}>
            {!search && (
              <a class="button primary" href={link(["try"])}>
                Try it
              </a>
            )}
          </Empty>
        </div>
      )}
      {body && body.queues.length > 0 && (
        <Table label="Queues" isBusy={!isFresh}>
          <thead>
            <tr>
              <SortHead by="name" {...head}>
                Queue
              </SortHead>
              <SortHead by="depth" {...head} isNumber>
                Waiting
              </SortHead>
              <th scope="col" class="number wide">
                Processing
              </th>
              <SortHead by="lag" {...head} isNumber>
                Lag
              </SortHead>
              <SortHead by="in" {...head} isNumber>
                In /s
              </SortHead>
              <SortHead by="out" {...head} isNumber>
                Out /s
              </SortHead>
              <SortHead by="deadLetters" {...head} isNumber>
                Dead letters
              </SortHead>
              <SortHead by="partitions" {...head} isNumber>
                Lanes
              </SortHead>
              <th scope="col" class="wide">
                Namespace / task
              </th>
            </tr>
          </thead>
          <tbody>
            {body.queues.map((queue) => (
              <Row key={queue.name} queue={queue} />
            ))}
          </tbody>
        </Table>
      )}
      <Pager
        offset={offset}
        limit={PER_PAGE}
        total={total ?? 0}
        onPage={(to) => change({ offset: to || null })}
      />
      {isMaking && <NewQueue onClose={() => setMaking(false)} />}
    </>
  );
}

const zero = (value: number): string => (value === 0 ? "number zero" : "number");

function Row({ queue }: { queue: QueueRow }) {
  const { name, messages, lagSeconds, inPerSecond, outPerSecond, deadLetters, partitions } = queue;
  return (
    <tr>
      <td>
        <a href={link(["queues", name])}>{queueName(name)}</a>
      </td>
      <td class={zero(messages.pending)}>{count(messages.pending)}</td>
      <td class={`${zero(messages.processing)} wide`}>{count(messages.processing)}</td>
      <td class={`${zero(lagSeconds)} ${lagSeconds > 300 ? "text-bad" : lagSeconds > 60 ? "text-warn" : ""}`}>
        {duration(lagSeconds)}
      </td>
      <td class={zero(inPerSecond)}>{rate(inPerSecond)}</td>
      <td class={zero(outPerSecond)}>{rate(outPerSecond)}</td>
      <td class={deadLetters > 0 ? "number text-bad" : "number zero"}>{count(deadLetters)}</td>
      <td class="number">{count(partitions)}</td>
      <td class="soft wide">{[queue.namespace, queue.task].filter((each) => each !== "").join(" / ")}</td>
    </tr>
  );
}

function NewQueue({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState("");
  const [namespace, setNamespace] = useState("");
  const [task, setTask] = useState("");
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    const isMade = await attempt(async () => {
      await post(api(["configure"]), {
        queue: name,
        mode: "merge",
        ...(namespace === "" ? {} : { namespace }),
        ...(task === "" ? {} : { task }),
      });
      return `Queue ${name} is there.`;
    });
    if (isMade) go(["queues", name]);
  };
  return (
    <Dialog title="New queue" onClose={onClose}>
      <form onSubmit={submit}>
        <p class="soft">A push makes its queue as well; here one is made without a message.</p>
        <label class="field">
          <span>Name</span>
          <input
            name="name"
            required
            maxLength={255}
            value={name}
            onInput={(e) => setName(e.currentTarget.value)}
          />
        </label>
        <div class="row">
          <label class="field grow">
            <span>Namespace, optional</span>
            <input name="namespace" value={namespace} onInput={(e) => setNamespace(e.currentTarget.value)} />
          </label>
          <label class="field grow">
            <span>Task, optional</span>
            <input name="task" value={task} onInput={(e) => setTask(e.currentTarget.value)} />
          </label>
        </div>
        <footer>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="primary">
            Make it
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
