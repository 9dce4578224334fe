/** Moving a group to a time or to the end, with a preview of what that means. */
import { useEffect, useState } from "preact/hooks";
import { api, get, post } from "../api.ts";
import { groupName, plural, queueName } from "../format.ts";
import type { SeekPreview } from "../types.ts";
import { Dialog } from "./dialog.tsx";
import { attempt } from "./notices.tsx";
import { Problem } from "./pieces.tsx";

const two = (value: number): string => String(value).padStart(2, "0");
const local = (date: Date): string =>
  `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}T${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;

export function SeekDialog(props: {
  readonly queue: string;
  readonly group: string;
  /** Absent: in all lanes. */
  readonly partition?: string;
  readonly onClose: () => void;
}) {
  const { queue, group, partition, onClose } = props;
  const [target, setTarget] = useState<"end" | "time">("time");
  const [time, setTime] = useState(() => local(new Date(Date.now() - 3_600_000)));
  const [preview, setPreview] = useState<SeekPreview>();
  const [error, setError] = useState<string>();
  const at = new Date(time);
  const isValid = target === "end" || !Number.isNaN(at.getTime());
  const where = target === "end" ? { toEnd: true } : { timestamp: isValid ? at.toISOString() : "" };
  const path = [
    "consumer-groups",
    group,
    "queues",
    queue,
    ...(partition === undefined ? [] : ["partitions", partition]),
    "seek",
  ];
  const url = api(path, where);
  useEffect(() => {
    let isOld = false;
    setPreview(undefined);
    setError(undefined);
    if (!isValid) return;
    get<SeekPreview>(url).then(
      (answer) => isOld || setPreview(answer),
      (failure) => isOld || setError((failure as Error).message),
    );
    return () => {
      isOld = true;
    };
  }, [url, isValid]);

  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    const isDone = await attempt(async () => {
      await post(api(path), where);
      return `${groupName(group)} was moved.`;
    });
    if (isDone) onClose();
  };
  return (
    <Dialog title={`Seek ${groupName(group)} in ${partition ?? queueName(queue)}`} onClose={onClose}>
      <form onSubmit={submit}>
        <label class="check">
          <input type="radio" name="target" checked={target === "time"} onChange={() => setTarget("time")} />
          To a time: what was stored then or later is delivered
        </label>
        <label class="field">
          <span>Time, in your time zone</span>
          <input
            type="datetime-local"
            name="time"
            step={1}
            disabled={target === "end"}
            value={time}
            onInput={(event) => setTime(event.currentTarget.value)}
          />
        </label>
        <label class="check">
          <input type="radio" name="target" checked={target === "end"} onChange={() => setTarget("end")} />
          To the end: what is stored now is skipped
        </label>
        <Problem error={error} />
        <div class="card" aria-live="polite">
          <dl class="facts">
            <dt>Delivered again</dt>
            <dd>{preview ? plural(preview.deliveredAgain, "message") : "…"}</dd>
            <dt>Skipped</dt>
            <dd>{preview ? plural(preview.skipped, "message") : "…"}</dd>
            <dt>Lanes moved</dt>
            <dd>{preview ? plural(preview.partitionsMoved, "lane") : "…"}</dd>
            <dt>Leases that end</dt>
            <dd>{preview ? plural(preview.leasesEnded, "lease") : "…"}</dd>
          </dl>
        </div>
        <footer>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="primary" disabled={!preview}>
            Move the group
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
