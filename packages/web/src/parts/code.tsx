/** Preformatted text that scrolls where it is long, with a button that copies it. */
import type { ComponentChildren } from "preact";
import { Copy } from "./pieces.tsx";

export function Code(props: {
  readonly label: string;
  readonly text: string;
  readonly copy?: string;
  readonly children: ComponentChildren;
}) {
  return (
    <div class="code">
      <div class="actions">
        <Copy text={props.text} label={props.copy ?? "Copy"} />
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <section tabIndex={0} aria-label={props.label}>
        <pre>{props.children}</pre>
      </section>
    </div>
  );
}
