/** A queue's options: shown, and edited; only what was changed is sent. */
import { useState } from "preact/hooks";
import { api, post } from "../api.ts";
import { queueName } from "../format.ts";
import type { Options } from "../types.ts";
import { Dialog } from "./dialog.tsx";
import { attempt } from "./notices.tsx";

interface Described {
  readonly label: string;
  readonly unit?: string;
  readonly default: number | boolean;
}

/** In the order in which they are shown. */
const OPTIONS: Readonly<Record<string, Described>> = {
  leaseTime: { label: "Lease time", unit: "s", default: 300 },
  retryLimit: { label: "Retries", default: 3 },
  retryDelay: { label: "Pause before a retry", unit: "ms", default: 1000 },
  deadLetterQueue: { label: "Dead letters", default: false },
  dlqAfterMaxRetries: { label: "Dead letter after the last retry", default: false },
  delayedProcessing: { label: "Delay of delivery", unit: "s", default: 0 },
  windowBuffer: { label: "Silence before delivery", unit: "s", default: 0 },
  priority: { label: "Priority", default: 0 },
  maxSize: { label: "Unfinished messages at most", default: 0 },
  ttl: { label: "Expires after", unit: "s", default: 3600 },
  maxWaitTimeSeconds: { label: "Waits at most", unit: "s", default: 0 },
  retentionEnabled: { label: "Retention", default: false },
  retentionSeconds: { label: "Kept at most", unit: "s", default: 0 },
  completedRetentionSeconds: { label: "Kept when finished", unit: "s", default: 0 },
  encryptionEnabled: { label: "Encrypted at rest", default: false },
  dedupWindowSeconds: { label: "Duplicates found for", unit: "s", default: 3600 },
  dedupMessagesMin: { label: "Duplicates among at least", default: 1000 },
  dedupMessagesMax: { label: "Duplicates among at most", default: 100000 },
};

const described = (name: string, value: number | boolean): Described =>
  OPTIONS[name] ?? { label: name, default: value };
const show = (value: number | boolean, unit = ""): string =>
  typeof value === "boolean" ? (value ? "yes" : "no") : `${value.toLocaleString("en")} ${unit}`;

/** What differs from the default can be seen at once, the rest is folded away. */
export function OptionList({ options }: { options: Options }) {
  const names = [...new Set([...Object.keys(OPTIONS), ...Object.keys(options)])].filter(
    (name) => name in options,
  );
  const said = (name: string): string => show(options[name]!, described(name, options[name]!).unit);
  const own = names.filter((name) => options[name] !== described(name, options[name]!).default);
  return (
    <details class="card">
      <summary>
        {own.length === 0 && "All are as by default"}
        {own.map((name, place) => (
          <span key={name}>
            {place > 0 && " · "}
            {described(name, options[name]!).label} <b>{said(name)}</b>
          </span>
        ))}
      </summary>
      <dl class="facts">
        {names.map((name) => [
          <dt key={name} title={name}>
            {described(name, options[name]!).label}
          </dt>,
          <dd key={`${name} value`}>{own.includes(name) ? <b>{said(name)}</b> : said(name)}</dd>,
        ])}
      </dl>
    </details>
  );
}

export function OptionEditor(props: {
  readonly name: string;
  readonly options: Options;
  readonly onClose: () => void;
}) {
  const { name, onClose } = props;
  const [before] = useState(props.options); // a refresh does not take away what is being typed
  const [changed, setChanged] = useState<Readonly<Record<string, number | boolean>>>({});
  const set = (option: string, value: number | boolean): void => {
    const { [option]: _, ...others } = changed;
    setChanged(value === before[option] ? others : { ...others, [option]: value });
  };
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    const isDone = await attempt(async () => {
      await post(api(["configure"]), { queue: name, mode: "merge", options: changed });
      return `Changed ${Object.keys(changed).join(", ")}.`;
    });
    if (isDone) onClose();
  };
  const count = Object.keys(changed).length;
  return (
    <Dialog title={`Options of ${queueName(name)}`} onClose={onClose}>
      <form onSubmit={submit}>
        <div class="options">
          {Object.entries(OPTIONS).map(([option, { label, unit }]) => {
            const value = changed[option] ?? before[option];
            if (value === undefined) return null;
            const isChanged = option in changed;
            return typeof value === "boolean" ? (
              <label key={option} class={isChanged ? "check changed" : "check"}>
                <input
                  type="checkbox"
                  name={option}
                  checked={value}
                  onChange={(event) => set(option, event.currentTarget.checked)}
                />
                <span>{label}</span>
              </label>
            ) : (
              <label key={option} class={isChanged ? "field changed" : "field"}>
                <span>
                  {label}
                  {unit ? `, ${unit}` : ""}
                </span>
                <input
                  type="number"
                  name={option}
                  min={0}
                  step={1}
                  required
                  value={value}
                  onInput={(event) => set(option, event.currentTarget.valueAsNumber)}
                />
              </label>
            );
          })}
        </div>
        <p class="soft" aria-live="polite">
          {count === 0 ? "Nothing is changed." : `Changes: ${Object.keys(changed).join(", ")}.`} 0 means: no
          such rule.
        </p>
        <footer>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="primary" disabled={count === 0}>
            Save
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
