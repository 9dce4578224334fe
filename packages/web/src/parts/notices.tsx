/** Short notices of what was done or went wrong, read out by screen readers. */
import { signal } from "@preact/signals";

interface Notice {
  readonly id: number;
  readonly text: string;
  readonly isError: boolean;
}

const notices = signal<readonly Notice[]>([]);
const SHOWN_MS = 6_000;
let lastId = 0;

function add(text: string, isError: boolean): void {
  const id = ++lastId;
  notices.value = [...notices.value.slice(-2), { id, text, isError }];
  setTimeout(() => dismiss(id), isError ? 2 * SHOWN_MS : SHOWN_MS);
}

const dismiss = (id: number): void => {
  notices.value = notices.value.filter((notice) => notice.id !== id);
};

export const tell = (text: string): void => add(text, false);
export const complain = (error: unknown): void =>
  add(error instanceof Error ? error.message : String(error), true);

/** Does something, says that it is done or why not; returns whether it is done. */
export async function attempt(work: () => Promise<string | undefined>): Promise<boolean> {
  try {
    const done = await work();
    if (done !== undefined) tell(done);
    return true;
  } catch (error) {
    complain(error);
    return false;
  }
}

export function Notices() {
  return (
    <div class="notices" role="status" aria-live="polite">
      {notices.value.map(({ id, text, isError }) => (
        <div key={id} class={isError ? "notice bad" : "notice"}>
          <span>{text}</span>
          <button type="button" class="quiet" aria-label="Dismiss" onClick={() => dismiss(id)}>
            ×
          </button>
        </div>
      ))}
    </div>
  );
}
