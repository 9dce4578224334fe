/**
 * Contexts are the brokers that a person works with, by name: a URL and a token each, in a file that only its owner
 * may read. One of them is the current one.
 */
import { chmodSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { UsageError } from "./exit-codes.ts";

export interface Context {
  readonly url: string;
  readonly token?: string;
}

export interface Contexts {
  readonly current?: string;
  readonly contexts: Readonly<Record<string, Context>>;
}

export const DEFAULT_URL = "http://localhost:6632";
const OWNER_ONLY = 0o600;
const FOR_OTHERS = 0o077;

/** Where the file is: in `$XDG_CONFIG_HOME`, by default `~/.config`. */
export function contextsFile(env: NodeJS.ProcessEnv): string {
  return join(env.XDG_CONFIG_HOME || join(env.HOME || homedir(), ".config"), "queen", "contexts.json");
}

/** What the file says; nothing where there is none. */
export function readContexts(file: string, warn: (message: string) => void): Contexts {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
    if (process.platform !== "win32" && (statSync(file).mode & FOR_OTHERS) !== 0) {
      warn(`${file} has tokens and can be read by others: run  chmod 600 ${file}`);
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return { contexts: {} };
    throw new UsageError(`${file} cannot be read: ${(error as Error).message}`, { cause: error });
  }
  const parsed = parseContexts(text);
  if (parsed === undefined) {
    throw new UsageError(`${file} is not a contexts file: mend it, or delete it and run  queen context set`);
  }
  return parsed;
}

function parseContexts(text: string): Contexts | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const { current, contexts } = (value ?? {}) as { current?: unknown; contexts?: unknown };
  if (typeof contexts !== "object" || contexts === null) return undefined;
  for (const context of Object.values(contexts) as Partial<Context>[]) {
    if (typeof context?.url !== "string") return undefined;
    if (context.token !== undefined && typeof context.token !== "string") return undefined;
  }
  return {
    ...(typeof current === "string" ? { current } : {}),
    contexts: contexts as Record<string, Context>,
  };
}

/** Whole or not at all: the new file takes the place of the old one. */
export function writeContexts(file: string, contexts: Contexts): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const draft = `${file}.${process.pid}`;
  writeFileSync(draft, `${JSON.stringify(contexts, null, 2)}\n`, { mode: OWNER_ONLY });
  chmodSync(draft, OWNER_ONLY);
  renameSync(draft, file);
}

/** What the command line says about the broker. */
export interface Wanted {
  readonly url?: string | undefined;
  readonly token?: string | undefined;
  readonly context?: string | undefined;
}

/**
 * The broker to talk to: by flags, else by a context that is named, else by QUEEN_URL, else by the current context, else
 * the one of this machine. A token that belongs to a context goes only to the URL of that context; QUEEN_TOKEN and
 * `--token` go wherever the command goes.
 */
export function chooseContext(wanted: Wanted, env: NodeJS.ProcessEnv, contexts: Contexts): Context {
  const named = wanted.context;
  if (named !== undefined && contexts.contexts[named] === undefined) {
    const known = Object.keys(contexts.contexts).sort().join(", ") || "none yet";
    throw new UsageError(`There is no context ${named} (there are: ${known}): see  queen context set --help`);
  }
  const urlOfContext = named === undefined ? env.QUEEN_URL || undefined : undefined;
  const chosen = contexts.contexts[named ?? contexts.current ?? ""];
  const url = wanted.url ?? urlOfContext ?? chosen?.url ?? DEFAULT_URL;
  const ofContext = url === chosen?.url ? chosen.token : undefined;
  const token =
    wanted.token ?? (named === undefined ? env.QUEEN_TOKEN || ofContext : ofContext || env.QUEEN_TOKEN);
  return { url: checkedUrl(url), ...(token ? { token } : {}) };
}

export function checkedUrl(url: string): string {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed?.protocol === "http:" || parsed?.protocol === "https:") return url.replace(/\/+$/, "");
  throw new UsageError(`"${url}" is no URL of a broker: it looks like ${DEFAULT_URL}`);
}
