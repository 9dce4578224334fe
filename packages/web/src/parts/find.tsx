/**
 * Finding a message by its transactionId, in a lane, a queue or everywhere. The broker searches in short steps and says how
 * far it is, so the search can be watched, stopped and gone on with. It is part of the address.
 */
import { useEffect, useRef, useState } from "preact/hooks";
import { api, get } from "../api.ts";
import { count, plural } from "../format.ts";
import { change, place } from "../router.ts";
import type { MessageRow } from "../types.ts";
import { MessageTable } from "./message-table.tsx";
import { Problem, Section } from "./pieces.tsx";

interface Step {
  readonly messages: readonly MessageRow[];
  readonly nextPage: string | null;
  readonly search: { readonly searched: number; readonly total: number };
}

interface Search {
  readonly found: readonly MessageRow[];
  readonly searched: number;
  readonly total: number;
  readonly next: string | null;
  readonly state: "searching" | "resting" | "complete";
}

const BEGINNING: Search = { found: [], searched: 0, total: 0, next: null, state: "searching" };
// Others use the broker's connections, too.
const PAUSE_MS = 50;

export function Find({ queue, partition }: { queue: string | null; partition: string | null }) {
  const wanted = place.value.query.get("find") ?? "";
  const [typed, setTyped] = useState(wanted);
  const [round, setRound] = useState(0);
  const submit = (event: Event): void => {
    event.preventDefault();
    change({ find: typed });
    setRound(round + 1);
  };
  const clear = (): void => {
    setTyped("");
    change({ find: null });
  };
  const where =
    partition !== null ? "in the lane above" : queue !== null ? "in the queue above" : "in all queues";
  return (
    <>
      <form class="filters" aria-label="Find messages" onSubmit={submit}>
        <label class="field">
          <span>Find by transactionId, {where}</span>
          <input
            name="transactionId"
            class="mono"
            required
            maxLength={255}
            value={typed}
            onInput={(event) => setTyped(event.currentTarget.value)}
          />
        </label>
        <button type="submit">Find</button>
        {wanted !== "" && (
          <button type="button" onClick={clear}>
            Back to the list
          </button>
        )}
      </form>
      {wanted !== "" && (
        <Found
          key={`${round} ${queue} ${partition} ${wanted}`}
          path={api(["messages"], { queue, partition, transactionId: wanted })}
        />
      )}
    </>
  );
}

/** One search. It rests when something is found, and when it is told to. */
function Found({ path }: { path: string }) {
  const [search, setSearch] = useState<Search>(BEGINNING);
  const [error, setError] = useState<string>();
  // The run that counts: another one was begun, or it was stopped.
  const latest = useRef(0);
  const run = async (from: Search): Promise<void> => {
    latest.current += 1;
    const own = latest.current;
    const isWanted = (): boolean => latest.current === own;
    let now: Search = { ...from, state: "searching" };
    setSearch(now);
    setError(undefined);
    try {
      while (isWanted() && now.state === "searching") {
        const {
          messages,
          nextPage,
          search: progress,
        } = await get<Step>(now.next === null ? path : `${path}&page=${encodeURIComponent(now.next)}`);
        const state = nextPage === null ? "complete" : messages.length > 0 ? "resting" : "searching";
        now = { found: [...now.found, ...messages], ...progress, next: nextPage, state };
        if (isWanted()) setSearch(now);
        if (state === "searching") await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      }
    } catch (failure) {
      if (!isWanted()) return;
      setError((failure as Error).message);
      setSearch({ ...now, state: "resting" });
    }
  };
  useEffect(() => {
    void run(BEGINNING);
    return () => {
      latest.current += 1;
    };
  }, []);
  const stop = (): void => {
    latest.current += 1;
    setSearch({ ...search, state: "resting" });
  };
  const { found, searched, total, state } = search;
  return (
    <section aria-label="Found">
      <Section
        title="Found"
        note={`searched ${count(searched)} of ${plural(total, "message")}`}
        actions={
          state === "searching" ? (
            <button type="button" onClick={stop}>
              Stop
            </button>
          ) : (
            state === "resting" && (
              <button type="button" onClick={() => void run(search)}>
                Search on
              </button>
            )
          )
        }
      >
        {state !== "complete" && (
          <progress aria-label="Messages searched" max={Math.max(1, total)} value={searched} />
        )}
        <p class="unseen" role="status">
          {state === "searching" ? "Searching" : outcome(search)}
        </p>
        <Problem error={error} />
        {found.length > 0 && <MessageTable messages={found} />}
        {found.length === 0 && state === "complete" && (
          <p class="hint">There is no message with this transactionId.</p>
        )}
      </Section>
    </section>
  );
}

function outcome({ found, searched, total, state }: Search): string {
  const what = found.length === 0 ? "Nothing was found" : `${plural(found.length, "message")} found`;
  return state === "complete"
    ? `${what}; everything was searched.`
    : `${what}; searched ${count(searched)} of ${plural(total, "message")}.`;
}
