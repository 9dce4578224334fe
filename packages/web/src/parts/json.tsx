/** JSON, indented and coloured, with a button that copies it. */
import { Code } from "./code.tsx";

// A string that is a key, another string, a number or a word.
const TOKENS = /("(?:\\.|[^"\\])*")(\s*:)?|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)/g;
// Colouring more than this would be felt.
const COLOURED_MAX = 100_000;

export function Json({ value, label }: { value: unknown; label: string }) {
  const text = JSON.stringify(value, null, 2) ?? "";
  return (
    <Code label={label} text={text}>
      {text.length > COLOURED_MAX ? text : coloured(text)}
    </Code>
  );
}

function coloured(text: string) {
  const parts: (string | preact.JSX.Element)[] = [];
  let at = 0;
  for (const match of text.matchAll(TOKENS)) {
    const [all, string, colon, literal] = match;
    if (match.index > at) parts.push(text.slice(at, match.index));
    const kind = literal !== undefined ? "literal" : colon !== undefined ? "key" : "text";
    parts.push(
      <span key={match.index} class={kind}>
        {literal ?? string}
      </span>,
    );
    if (colon !== undefined) parts.push(colon);
    at = match.index + all.length;
  }
  parts.push(text.slice(at));
  return parts;
}
