/**
 * As much of `fetch` as the client uses. In Node it is one of our own, which does it with a quarter of the work of
 * Node's; everywhere else it is the runtime's.
 */
import type { Abort } from "./abort.ts";
import { type Node, nodeFetch } from "./node-fetch.ts";

export interface Fetched extends Pick<Response, "ok" | "status" | "statusText" | "headers"> {
  text(): Promise<string>;
}

export type Fetch = (
  url: string,
  init: {
    readonly method: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly body?: string;
    readonly abort: Abort;
  },
) => Promise<Fetched>;

export const runtimeFetch: Fetch = ofNode() ?? standardFetch((url, init) => fetch(url, init));

/** For a `fetch` as the standard has it. */
export function standardFetch(standard: typeof fetch): Fetch {
  return (url, { abort, ...init }) => standard(url, { ...init, signal: abort.signal });
}

function ofNode(): Fetch | undefined {
  const { process, Buffer, Bun, Deno } = globalThis as {
    process?: { getBuiltinModule?: (name: string) => unknown };
    Buffer?: Node["Buffer"];
    Bun?: unknown;
    Deno?: unknown;
  };
  if (Bun !== undefined || Deno !== undefined) return undefined;
  const net = process?.getBuiltinModule?.("node:net") as Node["net"] | undefined;
  const tls = process?.getBuiltinModule?.("node:tls") as Node["tls"] | undefined;
  return net && tls && Buffer ? nodeFetch({ net, tls, Buffer }) : undefined;
}
