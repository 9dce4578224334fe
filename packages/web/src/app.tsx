/** The frame of every view: navigation, the state of the connection, notices; or the sign-in. */
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { connection } from "./live.ts";
import { Crown } from "./parts/crown.tsx";
import { Notices } from "./parts/notices.tsx";
import { Empty, Problem } from "./parts/pieces.tsx";
import { link, place } from "./router.ts";
import { may, session, sessionError, signOut } from "./session.ts";
import { SignIn } from "./sign-in.tsx";
import { chooseTheme, THEME_CHOICES, type ThemeChoice, themeChoice } from "./theme.ts";
import { findView, VIEWS, type View } from "./views.ts";

export function App() {
  if (session.value === undefined) {
    return (
      <main class="alone">
        <Problem error={sessionError.value} />
      </main>
    );
  }
  const { authentication, access } = session.value;
  if (authentication && access.every((each) => each === "open")) return <SignIn />;
  return <Shell />;
}

function Shell() {
  const { parts } = place.value;
  const view = findView(parts);
  const [isOpen, setOpen] = useState(false);
  // Another view closes the menu.
  useEffect(() => setOpen(false), [place.value]);
  return (
    <>
      <button type="button" class="skip" onClick={skip}>
        Skip to content
      </button>
      <header class="bar">
        <a class="brand" href={link(["overview"])}>
          <Crown />
          Queen
        </a>
        <button
          type="button"
          class="menu"
          aria-expanded={isOpen}
          aria-controls="navigation"
          onClick={() => setOpen(!isOpen)}
        >
          Menu
        </button>
      </header>
      <div class={isOpen ? "side open" : "side"} id="navigation">
        <nav aria-label="Main">
          {VIEWS.filter((each) => each.title && may(each.access)).map((each) => (
            <a
              key={each.name}
              href={link([each.name])}
              aria-current={view?.section === each.name ? "page" : undefined}
            >
              {each.title}
            </a>
          ))}
        </nav>
        <Foot />
      </div>
      <main id="content">
        {may("read") || view?.name === "try" ? (
          view ? (
            <Loaded view={view} />
          ) : (
            <Empty title="There is no such page">
              <a href={link(["overview"])}>Go to the overview</a>
            </Empty>
          )
        ) : (
          <Empty title="This credential may not look at anything">
            <p>
              Its role is {session.value?.roles.join(", ") || "none"}. <a href={link(["try"])}>Try it</a>{" "}
              works with what it may do.
            </p>
          </Empty>
        )}
      </main>
      <Notices />
    </>
  );
}

/** Views are loaded when they are first shown. */
function Loaded({ view }: { view: View }) {
  const [shown, setShown] = useState<{ name: string; Page: ComponentType<{ parts: readonly string[] }> }>();
  const [error, setError] = useState<string>();
  useEffect(() => {
    let isGone = false;
    view.load().then(
      (Page) => {
        if (!isGone) setShown({ name: view.name, Page });
      },
      () => setError("A part of the page could not be loaded. Load the page again."),
    );
    return () => {
      isGone = true;
    };
  }, [view]);
  const { parts } = place.value;
  const where = parts.join("/");
  const isShown = shown?.name === view.name;
  // A new view is announced by its title.
  useEffect(() => {
    if (!isShown) return;
    const title = document.querySelector<HTMLElement>("#content h1");
    document.title = title ? `${title.textContent} · Queen` : "Queen";
    if (hasMoved) title?.focus({ preventScroll: true });
    hasMoved = true;
    scrollTo(0, 0);
  }, [isShown, where]);
  if (error) return <Problem error={error} />;
  return isShown && shown ? <shown.Page key={where} parts={parts} /> : null;
}

// The first view does not take the focus away from the address.
let hasMoved = false;

function skip(): void {
  document.querySelector<HTMLElement>("#content h1")?.focus();
}

const CONNECTIONS = {
  idle: "Nothing live here",
  live: "Live",
  paused: "Paused while hidden",
  lost: "Reconnecting",
} as const;

function Foot() {
  const { authentication, name, version } = session.value!;
  return (
    <footer class="foot">
      <p class={`connection ${connection.value}`} role="status">
        <i aria-hidden="true" /> {CONNECTIONS[connection.value]}
      </p>
      <label>
        <span class="unseen">Theme</span>
        <select
          value={themeChoice.value}
          onChange={(event) => chooseTheme(event.currentTarget.value as ThemeChoice)}
        >
          {THEME_CHOICES.map((choice) => (
            <option key={choice} value={choice}>
              {choice === "system" ? "System theme" : choice === "light" ? "Light" : "Dark"}
            </option>
          ))}
        </select>
      </label>
      {authentication && (
        <p class="who">
          <span title={name ?? ""}>{name}</span>
          <button type="button" class="small" onClick={() => void signOut()}>
            Sign out
          </button>
        </p>
      )}
      <p class="soft">
        {version} · <a href="docs">HTTP interface</a>
      </p>
    </footer>
  );
}
