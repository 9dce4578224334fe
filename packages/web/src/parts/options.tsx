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
  /** Null: not saying it means something of its own, which `unsaid` tells. */
  readonly default: number | boolean | null;
  readonly unsaid?: string;
  readonly isFlag?: boolean;
}

/** In the order in which they are shown. */
const OPTIONS: Readonly<Record<string, Described>> = {
  leaseTime: { label: "Lease time", unit: "s", default: 300 },
  retryLimit: { label: "Retries", default: 3 },
  retryDelay: { label: "Pause before a retry", unit: "ms", default: 1000 },
  deadLetterQueue: { label: "Dead letters", default: null, unsaid: "yes, by default", isFlag: true },
  dlqAfterMaxRetries: {
    label: "Dead letter after the last retry",
    default: null,
    unsaid: "yes, by default",
    isFlag: true,
  },
  delayedProcessing: { label: "Delay of delivery", unit: "s", default: 0 },
  windowBuffer: { label: "Silence before delivery", unit: "s", default: 0 },
  priority: { label: "Priority", default: 0 },
  maxSize: { label: "Unfinished messages at most", default: 0 },
  ttl: { label: "Expires after", unit: "s", default: null, unsaid: "never" },
  maxWaitTimeSeconds: { label: "Waits at most", unit: "s", default: 0 },
  retentionEnabled: { label: "Retention", default: false, isFlag: true },
  retentionSeconds: { label: "Kept at most", unit: "s", default: 0 },
  completedRetentionSeconds: { label: "Kept when finished", unit: "s", default: 0 },
  encryptionEnabled: { label: "Encrypted at rest", default: false, isFlag: true },
  dedupWindowSeconds: { label: "Duplicates found for", unit: "s", default: 3600 },
  dedupMessagesMin: { label: "Duplicates among at least", default: 1000 },
  dedupMessagesMax: { label: "Duplicates among at most", default: 100000 },
};

const described = (name: string): Described => OPTIONS[name] ?? { label: name, default: null };

function say(name: string, value: number | boolean | null): string {
  const { unit = "", unsaid = "not said" } = described(name);
  if (value === null) return unsaid;
  return typeof value === "boolean" ? (value ? "yes" : "no") : `${value.toLocaleString("en")} ${unit}`;
}

/** What differs from the default can be seen at once, the rest is folded away. */
export function OptionList({ options }: { options: Options }) {
  const names = [...new Set([...Object.keys(OPTIONS), ...Object.keys(options)])].filter(
    (name) => name in options,
  );
  const valueIn = (name: string): number | boolean | null => options[name] ?? null;
  const said = (name: string): string => say(name, valueIn(name));
  const own = names.filter((name) => valueIn(name) !== described(name).default);
  return (
    <details class="card">
      <summary>
        {own.length === 0 && "All are as by default"}
        {own.map((name, place) => (
          <span key={name}>
            {place > 0 && " · "}
            {described(name).label} <b>{said(name)}</b>
          </span>
        ))}
      </summary>
      <dl class="facts">
        {names.map((name) => [
          <dt key={name} title={name}>
            {described(name).label}
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
  const [changed, setChanged] = useState<Options>({});
  const set = (option: string, value: number | boolean | null): void => {
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
  const names = Object.keys(OPTIONS).filter((option) => option in before);
  const field = (option: string): FieldProps => ({
    option,
    value: changed[option] ?? before[option] ?? null,
    isSaid: before[option] !== null,
    isChanged: option in changed,
    onSet: (value) => set(option, value),
  });
  const count = Object.keys(changed).length;
  return (
    <Dialog title={`Options of ${queueName(name)}`} onClose={onClose}>
      <form onSubmit={submit}>
        <div class="options">
          {names
            .filter((option) => !described(option).isFlag)
            .map((option) => (
              <NumberField key={option} {...field(option)} />
            ))}
        </div>
        <div class="options">
          {names
            .filter((option) => described(option).isFlag)
            .map((option) => (
              <FlagField key={option} {...field(option)} />
            ))}
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

interface FieldProps {
  readonly option: string;
  readonly value: number | boolean | null;
  /** Whether it was said before; then it cannot be unsaid here. */
  readonly isSaid: boolean;
  readonly isChanged: boolean;
  readonly onSet: (value: number | boolean | null) => void;
}

function NumberField({ option, value, isSaid, isChanged, onSet }: FieldProps) {
  const { label, unit, unsaid } = described(option);
  return (
    <label class={isChanged ? "field changed" : "field"}>
      <span>
        {label}
        {unit ? `, ${unit}` : ""}
      </span>
      <input
        type="number"
        name={option}
        min={0}
        step={1}
        required={isSaid}
        placeholder={unsaid ?? ""}
        value={value === null ? "" : Number(value)}
        onInput={({ currentTarget }) =>
          onSet(currentTarget.value === "" ? null : currentTarget.valueAsNumber)
        }
      />
    </label>
  );
}

function FlagField({ option, value, isSaid, isChanged, onSet }: FieldProps) {
  const { label, unsaid } = described(option);
  return (
    <label class={isChanged ? "field changed" : "field"}>
      <span>{label}</span>
      <select
        name={option}
        value={String(value)}
        onChange={({ currentTarget }) =>
          onSet(currentTarget.value === "null" ? null : currentTarget.value === "true")
        }
      >
        {!isSaid && <option value="null">{unsaid}</option>}
        <option value="true">yes</option>
        <option value="false">no</option>
      </select>
    </label>
  );
}
