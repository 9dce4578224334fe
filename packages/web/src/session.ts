/** Who uses the page, and what he may do. */
import { signal } from "@preact/signals";
import { get, post, remove, whenUnknown } from "./api.ts";
import { whenRefused } from "./live.ts";

export type Access = "read" | "produce" | "consume" | "write" | "admin";

export interface Session {
  readonly authentication: boolean;
  readonly passwords: boolean;
  readonly name: string | null;
  readonly roles: readonly string[];
  readonly access: readonly string[];
  readonly queues: readonly string[] | null;
  readonly version: string;
}

export const session = signal<Session | undefined>(undefined);
/** Why the session could not be read. */
export const sessionError = signal<string | undefined>(undefined);

export const may = (access: Access): boolean => session.value?.access.includes(access) ?? false;

export async function readSession(): Promise<void> {
  try {
    session.value = await get<Session>("api/v1/session");
    sessionError.value = undefined;
  } catch (error) {
    sessionError.value = (error as Error).message;
  }
}

/** What a person shows: a token or a key, or who he is and his password. */
export type Shown = { readonly credential: string } | { readonly user: string; readonly password: string };

export async function signIn(shown: Shown): Promise<void> {
  session.value = await post<Session>("api/v1/session", shown);
}

export async function signOut(): Promise<void> {
  await remove("api/v1/session");
  await readSession();
}

const readAgain = (): void => {
  if (session.value?.authentication) void readSession();
};
whenUnknown(readAgain);
whenRefused(readAgain);
