/** Dead letters: by error, and those of one error or of all; requeue and purge of one, of some, or of all. */
import { useEffect, useState } from "preact/hooks";
import { api, get } from "../api.ts";
import { count, groupName, plural, queueName } from "../format.ts";
import { useLive } from "../live.ts";
import { Json } from "../parts/json.tsx";
import { type Chosen, LetterActions } from "../parts/letter-actions.tsx";
import { messageLink } from "../parts/message-table.tsx";
import { OpenQueue } from "../parts/open-queue.tsx";
import { Empty, Head, Problem, Section, Time } from "../parts/pieces.tsx";
import { Table } from "../parts/table.tsx";
import { change, link, place } from "../router.ts";
import { may } from "../session.ts";
import type { ErrorRow, Letter } from "../types.ts";

const PER_PAGE = 50;

export function DeadLetters() {
  const { query } = place.value;
  const queue = query.get("queue");
  const consumerGroup = query.get("group");
  const error = query.get("error");
  const errors = useLive<{ errors: readonly ErrorRow[] }>(api(["dlq", "errors"], { queue, consumerGroup }));
  const total = (errors.body?.errors ?? []).reduce((sum, row) => sum + row.count, 0);
  const set = (event: Event): void => {
    const { name, value } = event.currentTarget as HTMLInputElement;
    change({ [name]: value.trim(), error: null });
  };
  return (
    <>
      <Head title="Dead letters" />
      <Problem error={errors.error} />
      {errors.error && <OpenQueue />}
      <form class="filters" aria-label="Filter" onSubmit={(event) => event.preventDefault()}>
        <label class="field">
          <span>Queue</span>
          <input name="queue" value={queue ?? ""} onChange={set} />
        </label>
        <label class="field">
          <span>Consumer group</span>
          <input name="group" value={consumerGroup ?? ""} onChange={set} />
        </label>
      </form>
      {errors.body && total === 0 && (
        <div class="card">
          <Empty title="No dead letters">
            <p>Messages come here when their retries are used up.</p>
          </Empty>
        </div>
      )}
      {errors.body && total > 0 && (
        <>
          <Errors rows={errors.body.errors} chosen={error} />
          <Letters
            key={`${queue}\n${consumerGroup}\n${error}`}
            filter={{ queue, consumerGroup, error }}
            count={
              error === null ? total : (errors.body.errors.find((row) => row.error === error)?.count ?? 0)
            }
          />
        </>
      )}
    </>
  );
}

function Errors({ rows, chosen }: { rows: readonly ErrorRow[]; chosen: string | null }) {
  const query = Object.fromEntries(place.value.query);
  return (
    <Table label="Dead letters by error">
      <thead>
        <tr>
          <th scope="col">Error</th>
          <th scope="col" class="number">
            Letters
          </th>
          <th scope="col" class="number wide">
            Queues
          </th>
          <th scope="col" class="number wide">
            Lanes
          </th>
          <th scope="col" class="number wide">
            First
          </th>
          <th scope="col" class="number">
            Last
          </th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={row.error} class={row.error === chosen ? "chosen" : ""}>
            <td class="wrap">
              <a
                href={link(["dead-letters"], { ...query, error: row.error === chosen ? null : row.error })}
                aria-current={row.error === chosen ? "true" : undefined}
              >
                {row.error.slice(0, 300) || "(no error was given)"}
              </a>
            </td>
            <td class="number text-bad">{count(row.count)}</td>
            <td class="number wide">{count(row.queues)}</td>
            <td class="number wide">{count(row.partitions)}</td>
            <td class="number wide">
              <Time at={row.firstFailedAt} />
            </td>
            <td class="number">
              <Time at={row.lastFailedAt} />
            </td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}

interface Listed {
  readonly messages: readonly Letter[];
  readonly nextPage: string | null;
}

function Letters({ filter, count: total }: { filter: Chosen["filter"]; count: number }) {
  const [listed, setListed] = useState<Listed>();
  const [error, setError] = useState<string>();
  const [picked, setPicked] = useState<ReadonlySet<string>>(new Set());
  const load = async (page: string | null): Promise<void> => {
    try {
      const more = await get<Listed>(api(["dlq"], { ...filter, limit: PER_PAGE, page }));
      const before = page === null ? [] : (listed?.messages ?? []);
      setListed({ ...more, messages: [...before, ...more.messages] });
      setError(undefined);
    } catch (failure) {
      setError((failure as Error).message);
    }
  };
  // Read when the number of letters changes.
  useEffect(() => void load(null), [total]);
  const pick = (id: string, isPicked: boolean): void => {
    const next = new Set(picked);
    if (isPicked) next.add(id);
    else next.delete(id);
    setPicked(next);
  };
  const done = (): void => {
    setPicked(new Set());
    void load(null);
  };
  return (
    <Section
      title={filter.error === null ? "All letters" : "Letters with this error"}
      note={plural(total, "letter")}
      actions={
        may("write") && <LetterActions chosen={{ ids: [...picked], filter }} total={total} onDone={done} />
      }
    >
      <Problem error={error} />
      <Table label="Dead letters">
        <thead>
          <tr>
            <th scope="col" class="tight">
              <span class="unseen">Chosen</span>
            </th>
            <th scope="col">Transaction</th>
            <th scope="col">Queue</th>
            <th scope="col">Lane</th>
            <th scope="col">Group</th>
            <th scope="col" class="number wide">
              Retries
            </th>
            <th scope="col" class="number">
              Failed
            </th>
          </tr>
        </thead>
        <tbody>
          {listed?.messages.map((letter) => (
            <LetterRow
              key={letter.deadLetterId}
              letter={letter}
              isPicked={picked.has(letter.deadLetterId)}
              onPick={(isPicked) => pick(letter.deadLetterId, isPicked)}
            />
          ))}
        </tbody>
      </Table>
      {listed?.nextPage && (
        <div class="pager">
          <button type="button" onClick={() => void load(listed.nextPage)}>
            Show more
          </button>
        </div>
      )}
    </Section>
  );
}

function LetterRow(props: {
  readonly letter: Letter;
  readonly isPicked: boolean;
  readonly onPick: (isPicked: boolean) => void;
}) {
  const { letter, isPicked, onPick } = props;
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <tr class={isPicked ? "chosen" : ""}>
        <td class="tight">
          {may("write") && (
            <input
              type="checkbox"
              aria-label={`Choose ${letter.transactionId}`}
              checked={isPicked}
              onChange={(event) => onPick(event.currentTarget.checked)}
            />
          )}
        </td>
        <td>
          <button
            type="button"
            class="fold"
            aria-expanded={isOpen}
            aria-label={`Payload of ${letter.transactionId}`}
            onClick={() => setOpen(!isOpen)}
          />{" "}
          <a class="mono" href={messageLink(letter)}>
            {letter.transactionId}
          </a>
        </td>
        <td>{queueName(letter.queue)}</td>
        <td>
          <a href={link(["queues", letter.queue, "lanes", letter.partition])}>{letter.partition}</a>
        </td>
        <td>{groupName(letter.consumerGroup)}</td>
        <td class="number wide">{count(letter.retryCount)}</td>
        <td class="number">
          <Time at={letter.failedAt} />
        </td>
      </tr>
      {isOpen && (
        <tr>
          <td colSpan={7} class="wrap">
            <p class="text-bad">{letter.errorMessage}</p>
            <Json value={letter.data} label={`Payload of ${letter.transactionId}`} />
          </td>
        </tr>
      )}
    </>
  );
}
