/** Small pieces that every view uses. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { clock, duration, secondsSince } from "../format.ts";
import { type Access, may } from "../session.ts";

export type Tone = "good" | "warn" | "bad" | "accent" | "plain";

export function Badge({ tone = "plain", children }: { tone?: Tone; children: ComponentChildren }) {
  return <span class={`badge ${tone}`}>{children}</span>;
}

/** The title of a view, where it lies, and what can be done there. */
export function Head(props: {
  readonly title: string;
  readonly above?: readonly (readonly [string, string])[];
  readonly badges?: ComponentChildren;
  readonly children?: ComponentChildren;
}) {
  const { title, above = [], badges, children } = props;
  return (
    <header class="head">
      <div>
        {above.length > 0 && (
          <nav class="crumbs" aria-label="Breadcrumb">
            {above.map(([text, href]) => (
              <a key={href} href={href}>
                {text}
              </a>
            ))}
          </nav>
        )}
        <h1 tabIndex={-1}>
          <span>{title}</span>
          {badges}
        </h1>
      </div>
      {children && <div class="actions">{children}</div>}
    </header>
  );
}

export function Section(props: {
  readonly title: string;
  readonly note?: ComponentChildren;
  readonly actions?: ComponentChildren;
  readonly children: ComponentChildren;
}) {
  return (
    <section class="section">
      <header>
        <h2>{props.title}</h2>
        {props.note && <p class="soft">{props.note}</p>}
        {props.actions && <div class="actions">{props.actions}</div>}
      </header>
      {props.children}
    </section>
  );
}

/** A figure that is looked at from far away. */
export function Figure(props: {
  readonly label: string;
  readonly value: ComponentChildren;
  readonly unit?: string;
  readonly note?: ComponentChildren;
  readonly tone?: Tone;
  readonly href?: string;
}) {
  const { label, value, unit, note, tone, href } = props;
  const inside = (
    <>
      <span class="label">{label}</span>
      <span class={`value ${tone ?? ""}`}>
        {value}
        {unit && <small> {unit}</small>}
      </span>
      {note && <span class="note">{note}</span>}
    </>
  );
  return href ? (
    <a class="figure" href={href}>
      {inside}
    </a>
  ) : (
    <div class="figure">{inside}</div>
  );
}

export function Time({ at, isAge = false }: { at: string | null; isAge?: boolean }) {
  if (at === null) return <span class="soft">–</span>;
  return (
    <time dateTime={at} title={at}>
      {isAge ? `${duration(secondsSince(at))} ago` : clock(at)}
    </time>
  );
}

/** Only for those who may. */
export function Allowed({ to, children }: { to: Access; children: ComponentChildren }): ComponentChildren {
  return may(to) ? children : null;
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="title">{title}</p>
      {children}
    </div>
  );
}

export function Problem({ error }: { error: string | undefined }) {
  return error === undefined ? null : (
    <p class="problem" role="alert">
      {error}
    </p>
  );
}

export function Copy({ text, label = "Copy" }: { text: string; label?: string }) {
  const [isDone, setDone] = useState(false);
  const copy = async (): Promise<void> => {
    if (!(await copied(text))) return;
    setDone(true);
    setTimeout(() => setDone(false), 1_500);
  };
  return (
    <button type="button" class="small" onClick={copy}>
      <span aria-live="polite">{isDone ? "Copied" : label}</span>
    </button>
  );
}

/** Where a page comes by plain HTTP from another host, browsers have no clipboard for it but this. */
async function copied(text: string): Promise<boolean> {
  if (navigator.clipboard) {
    return navigator.clipboard.writeText(text).then(
      () => true,
      () => false,
    );
  }
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  const isCopied = document.execCommand("copy");
  area.remove();
  return isCopied;
}
