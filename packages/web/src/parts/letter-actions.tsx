/** Requeue and purge, of the letters that were picked or of all that the filter names, part by part with progress. */
import { useRef, useState } from "preact/hooks";
import { api, post } from "../api.ts";
import { count, plural } from "../format.ts";
import { ConfirmByName, Dialog } from "./dialog.tsx";
import { attempt } from "./notices.tsx";

export interface Chosen {
  readonly ids: readonly string[];
  readonly filter: {
    readonly queue: string | null;
    readonly consumerGroup: string | null;
    readonly error: string | null;
  };
}

type Action = "requeue" | "purge";

// A part is answered quickly enough that the progress is seen to move.
const PART = 500;

interface PartAnswer {
  readonly requeued?: number;
  readonly purged?: number;
  readonly remaining: number;
}

export function LetterActions(props: {
  readonly chosen: Chosen;
  readonly total: number;
  readonly onDone: () => void;
}) {
  const { chosen, total, onDone } = props;
  const [confirming, setConfirming] = useState<Action>();
  const [progress, setProgress] = useState<{ action: Action; done: number; of: number }>();
  const isStopped = useRef(false);
  const isPicked = chosen.ids.length > 0;
  const many = isPicked ? chosen.ids.length : total;

  const run = (action: Action) =>
    attempt(async () => {
      isStopped.current = false;
      let done = 0;
      setProgress({ action, done, of: many });
      try {
        for (let isMore = true; isMore && !isStopped.current; ) {
          const { ids, filter } = chosen;
          const part = isPicked
            ? { ids: ids.slice(done, done + PART) }
            : { ...filter, all: Object.values(filter).every((each) => each === null), limit: PART };
          const answer = await post<PartAnswer>(api(["dlq", action]), part);
          const moved = answer.requeued ?? answer.purged ?? 0;
          done += isPicked ? part.ids!.length : moved;
          isMore = isPicked ? done < ids.length : moved > 0 && answer.remaining > 0 && done < total;
          setProgress({ action, done, of: many });
        }
      } finally {
        setProgress(undefined);
        onDone();
      }
      return `${action === "requeue" ? "Requeued" : "Purged"} ${plural(done, "dead letter")}.`;
    });

  return (
    <>
      <button type="button" class="primary" disabled={many === 0} onClick={() => setConfirming("requeue")}>
        Requeue {isPicked ? count(many) : "all"}
      </button>
      <button type="button" class="danger" disabled={many === 0} onClick={() => setConfirming("purge")}>
        Purge {isPicked ? count(many) : "all"}
      </button>
      {confirming === "requeue" && (
        <Dialog title="Requeue" onClose={() => setConfirming(undefined)}>
          <form
            onSubmit={(event) => {
              event.preventDefault();
              setConfirming(undefined);
              void run("requeue");
            }}
          >
            <p>
              {plural(many, "dead letter")} become messages again, at the end of their lanes, for the group
              that had given them up.
            </p>
            <footer>
              <button type="button" onClick={() => setConfirming(undefined)}>
                Cancel
              </button>
              <button type="submit" class="primary">
                Requeue
              </button>
            </footer>
          </form>
        </Dialog>
      )}
      {confirming === "purge" && (
        <ConfirmByName
          title="Purge"
          name="purge"
          action={`Purge ${plural(many, "letter")}`}
          onClose={() => setConfirming(undefined)}
          onConfirm={async () => {
            setConfirming(undefined);
            return run("purge");
          }}
        >
          <p>{plural(many, "dead letter")} are deleted. What is in the log stays there.</p>
        </ConfirmByName>
      )}
      {progress && (
        <Dialog
          title={progress.action === "requeue" ? "Requeuing" : "Purging"}
          onClose={() => {
            isStopped.current = true;
          }}
        >
          <div class="body">
            <label>
              <span class="unseen">Progress</span>
              <progress max={Math.max(1, progress.of)} value={progress.done} />
            </label>
            <p aria-live="polite">
              {count(progress.done)} of {count(progress.of)}
            </p>
            <footer>
              <button
                type="button"
                onClick={() => {
                  isStopped.current = true;
                }}
              >
                Stop
              </button>
            </footer>
          </div>
        </Dialog>
      )}
    </>
  );
}
