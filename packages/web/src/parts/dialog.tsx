/** A dialog over the page: the browser keeps the focus inside of it, and Escape closes it. */
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";

export interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

export function Dialog({ title, onClose, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => element.current?.showModal(), []);
  return (
    <dialog ref={element} aria-labelledby={id} onClose={onClose}>
      <header>
        <h2 id={id}>{title}</h2>
        <button type="button" class="quiet" aria-label="Close" onClick={() => element.current?.close()}>
          ×
        </button>
      </header>
      {children}
    </dialog>
  );
}

/** For what cannot be undone: the name of what it is about must be typed. */
export function ConfirmByName(props: {
  readonly title: string;
  readonly name: string;
  readonly action: string;
  readonly children: ComponentChildren;
  readonly onConfirm: () => Promise<boolean>;
  readonly onClose: () => void;
}) {
  const { title, name, action, children, onConfirm, onClose } = props;
  const [typed, setTyped] = useState("");
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (typed !== name) return;
    setBusy(true);
    if (await onConfirm()) onClose();
    setBusy(false);
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={submit}>
        {children}
        <label class="field">
          <span>
            Type <code>{name === "" ? "nothing" : name}</code> to confirm
          </span>
          <input
            name="confirmation"
            autocomplete="off"
            spellcheck={false}
            value={typed}
            onInput={(event) => setTyped(event.currentTarget.value)}
          />
        </label>
        <footer>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="danger" disabled={typed !== name || isBusy}>
            {action}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
