/** Messages by queue, lane, status and time; one is found by its transactionId. */
import { useEffect, useState } from "preact/hooks";
import { api, get } from "../api.ts";
import { Find } from "../parts/find.tsx";
import { MessageTable } from "../parts/message-table.tsx";
import { Head, Problem } from "../parts/pieces.tsx";
import { change, place } from "../router.ts";
import { session } from "../session.ts";
import type { MessageRow } from "../types.ts";

const STATUSES = ["pending", "processing", "completed", "dead_letter"] as const;
const FIELDS = ["queue", "partition", "status", "from", "to"] as const;
const PER_PAGE = 100;

interface Listed {
  readonly messages: readonly MessageRow[];
  readonly nextPage: string | null;
}

/** What `datetime-local` holds is in the reader's time zone. */
const utc = (local: string | null): string | null => {
  const at = local ? new Date(local) : undefined;
  return at && !Number.isNaN(at.getTime()) ? at.toISOString() : null;
};

export function Messages() {
  const { query } = place.value;
  const [listed, setListed] = useState<Listed>();
  const [error, setError] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  const values = Object.fromEntries(FIELDS.map((field) => [field, query.get(field)]));
  const path = api(["messages"], {
    ...values,
    from: utc(values.from ?? null),
    to: utc(values.to ?? null),
    limit: PER_PAGE,
  });
  const needsQueue = session.value?.queues !== null && !values.queue;
  // What is found stands in the place of the list.
  const isFinding = query.has("find");

  const load = async (page?: string): Promise<void> => {
    setBusy(true);
    try {
      const more = await get<Listed>(page === undefined ? path : `${path}&page=${encodeURIComponent(page)}`);
      const before = page === undefined ? [] : (listed?.messages ?? []);
      setListed({ ...more, messages: [...before, ...more.messages] });
      setError(undefined);
    } catch (failure) {
      setError((failure as Error).message);
    }
    setBusy(false);
  };
  // Another filter is another list.
  useEffect(() => {
    if (!needsQueue && !isFinding) void load();
  }, [path, isFinding]);

  return (
    <>
      <Head title="Messages">
        <button type="button" disabled={isBusy || isFinding} onClick={() => void load()}>
          Refresh
        </button>
      </Head>
      <Filters values={values} />
      <Find queue={values.queue || null} partition={values.partition || null} />
      <Problem error={error} />
      {needsQueue && <p class="hint">This credential may use some queues only: name one.</p>}
      <div aria-busy={isBusy}>{!isFinding && listed && <MessageTable messages={listed.messages} />}</div>
      {!isFinding && listed?.nextPage && (
        <div class="pager">
          <button type="button" disabled={isBusy} onClick={() => void load(listed.nextPage!)}>
            Show more
          </button>
        </div>
      )}
    </>
  );
}

function Filters({ values }: { values: Readonly<Record<string, string | null>> }) {
  const set = (event: Event): void => {
    const { name, value } = event.currentTarget as HTMLInputElement | HTMLSelectElement;
    change({ [name]: value.trim() });
  };
  return (
    <form class="filters" aria-label="Filter" onSubmit={(event) => event.preventDefault()}>
      <label class="field">
        <span>Queue</span>
        <input name="queue" value={values.queue ?? ""} onChange={set} />
      </label>
      <label class="field">
        <span>Lane</span>
        <input name="partition" value={values.partition ?? ""} onChange={set} />
      </label>
      <label class="field">
        <span>Status</span>
        <select name="status" value={values.status ?? ""} onChange={set}>
          <option value="">any</option>
          {STATUSES.map((status) => (
            <option key={status} value={status}>
              {status.replace("_", " ")}
            </option>
          ))}
        </select>
      </label>
      <label class="field">
        <span>From, an hour ago if empty</span>
        <input name="from" type="datetime-local" step={1} value={values.from ?? ""} onChange={set} />
      </label>
      <label class="field">
        <span>To</span>
        <input name="to" type="datetime-local" step={1} value={values.to ?? ""} onChange={set} />
      </label>
    </form>
  );
}
