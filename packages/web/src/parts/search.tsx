/** A search of names; what is typed is part of the address, a moment later. */
import { useEffect, useRef, useState } from "preact/hooks";
import { change, place } from "../router.ts";

const PAUSE_MS = 250;

export function Search({ label, name = "search" }: { label: string; name?: string }) {
  const [text, setText] = useState(place.value.query.get(name) ?? "");
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const type = (value: string): void => {
    setText(value);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => change({ [name]: value, offset: null }), PAUSE_MS);
  };
  return (
    <input
      type="search"
      aria-label={label}
      placeholder={label}
      value={text}
      onInput={(event) => type(event.currentTarget.value)}
    />
  );
}
