/** The views, and the paths that lead to them. */
import type { ComponentType } from "preact";
import type { Access } from "./session.ts";

export interface View {
  readonly name: string;
  /** The entry of the navigation that it belongs to. */
  readonly section: string;
  /** In the navigation; absent: it is reached from other views. */
  readonly title?: string;
  readonly access: Access;
  readonly load: () => Promise<ComponentType<{ parts: readonly string[] }>>;
}

const page = (name: string, access: Access, load: View["load"], title?: string, section = name): View => ({
  name,
  section,
  access,
  load,
  ...(title === undefined ? {} : { title }),
});

export const VIEWS: readonly View[] = [
  page("overview", "read", () => import("./pages/overview.tsx").then((m) => m.Overview), "Overview"),
  page("queues", "read", () => import("./pages/queues.tsx").then((m) => m.Queues), "Queues"),
  page("queue", "read", () => import("./pages/queue.tsx").then((m) => m.Queue), undefined, "queues"),
  page("lane", "read", () => import("./pages/lane.tsx").then((m) => m.LanePage), undefined, "queues"),
  page("messages", "read", () => import("./pages/messages.tsx").then((m) => m.Messages), "Messages"),
  page(
    "message",
    "read",
    () => import("./pages/message.tsx").then((m) => m.MessagePage),
    undefined,
    "messages",
  ),
  page("groups", "read", () => import("./pages/groups.tsx").then((m) => m.Groups), "Consumer groups"),
  page("group", "read", () => import("./pages/group.tsx").then((m) => m.GroupPage), undefined, "groups"),
  page(
    "dead-letters",
    "read",
    () => import("./pages/dead-letters.tsx").then((m) => m.DeadLetters),
    "Dead letters",
  ),
  page("traces", "read", () => import("./pages/traces.tsx").then((m) => m.Traces), "Traces"),
  page("system", "read", () => import("./pages/system.tsx").then((m) => m.System), "System"),
  page(
    "maintenance",
    "admin",
    () => import("./pages/maintenance.tsx").then((m) => m.Maintenance),
    "Maintenance",
  ),
  page("try", "produce", () => import("./pages/try-it.tsx").then((m) => m.TryIt), "Try it"),
];

const named = (name: string): View | undefined => VIEWS.find((view) => view.name === name);

/** `queues/orders` is a queue, `queues/orders/lanes/customer-1` a lane; undefined: there is no such view. */
export function findView(parts: readonly string[]): View | undefined {
  const [section, ...rest] = parts;
  if (section === "" || section === undefined) return named("overview");
  if (section === "queues" && rest.length === 1) return named("queue");
  if (section === "queues" && rest.length === 3 && rest[1] === "lanes") return named("lane");
  if (section === "messages" && rest.length === 2) return named("message");
  if (section === "groups" && rest.length === 2) return named("group");
  if (section === "traces" && rest.length <= 1) return named("traces");
  const view = rest.length === 0 ? named(section) : undefined;
  return view?.title === undefined ? undefined : view;
}
