/** What of a queue is paused, and pausing it. */
import { useState } from "preact/hooks";
import { api, post } from "../api.ts";
import { groupName } from "../format.ts";
import type { GroupRow, Pause } from "../types.ts";
import { Dialog } from "./dialog.tsx";
import { attempt } from "./notices.tsx";
import { Allowed, Section, Time } from "./pieces.tsx";

export function PauseList({ queue, pauses }: { queue: string; pauses: readonly Pause[] }) {
  if (pauses.length === 0) return null;
  const resume = ({ partition, consumerGroup }: Pause) =>
    attempt(async () => {
      await post(api(["queues", queue, "resume"]), { partition, consumerGroup });
      return "It delivers again.";
    });
  return (
    <Section title="Pauses">
      <ul class="findings card">
        {pauses.map((pause) => (
          <li key={`${pause.partition}\n${pause.consumerGroup}`}>
            <span>
              <Time at={pause.pausedAt} />
            </span>
            <div class="row">
              <p class="grow">{pause.message}</p>
              <Allowed to="write">
                <button type="button" class="small" onClick={() => void resume(pause)}>
                  Resume
                </button>
              </Allowed>
            </div>
          </li>
        ))}
      </ul>
    </Section>
  );
}

/** Of a queue, or of one lane of it. */
export function PauseDialog(props: {
  readonly queue: string;
  readonly partition?: string;
  readonly groups: readonly Pick<GroupRow, "name">[];
  readonly onClose: () => void;
}) {
  const { queue, partition, groups, onClose } = props;
  const [reason, setReason] = useState("");
  const [group, setGroup] = useState("");
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    const isDone = await attempt(async () => {
      const { message } = await post<{ message: string }>(api(["queues", queue, "pause"]), {
        ...(partition === undefined ? {} : { partition }),
        ...(group === "" ? {} : { consumerGroup: group }),
        ...(reason === "" ? {} : { reason }),
      });
      return message;
    });
    if (isDone) onClose();
  };
  return (
    <Dialog title={partition === undefined ? "Pause the queue" : "Pause the lane"} onClose={onClose}>
      <form onSubmit={submit}>
        <p class="soft">Pushes and acks go on; nothing is delivered until it is resumed.</p>
        <label class="field">
          <span>For</span>
          <select value={group} onChange={(event) => setGroup(event.currentTarget.value)}>
            <option value="">every consumer group</option>
            {groups.map(({ name }) => (
              <option key={name} value={name}>
                {groupName(name)}
              </option>
            ))}
          </select>
        </label>
        <label class="field">
          <span>Reason, for those who ask why nothing moves</span>
          <input
            name="reason"
            maxLength={1000}
            value={reason}
            onInput={(e) => setReason(e.currentTarget.value)}
          />
        </label>
        <footer>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="primary">
            Pause
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
