/** The connection to a broker: the client of `@queen/client`, with numbers kept as they are written. */
import { Queen, QueenError, ServerError as Refusal } from "@queen/client";
import type { Context } from "./contexts.ts";
import { protect, restore } from "./exact-json.ts";
import { CommandError, exitCodeOf, ServerError } from "./exit-codes.ts";

export type Api = Pick<Queen, "request" | "answer">;

// A person waits: one more look at a broker that is being restarted, then an answer.
const RETRIES = 2;

export function connect({ url, token }: Context): Api {
  return new Queen({ url, retries: RETRIES, fetch: exactFetch, ...(token === undefined ? {} : { token }) });
}

const exactFetch: typeof fetch = async (input, init) => {
  const body = typeof init?.body === "string" ? restore(init.body) : init?.body;
  const response = await fetch(input, body === undefined ? init : { ...init, body });
  if (!response.headers.get("content-type")?.includes("json")) return response;
  const { status, statusText, headers } = response;
  return new Response(protect(await response.text()), { status, statusText, headers });
};

/** The error to print for what a request was rejected with. */
export function commandError(error: unknown): unknown {
  if (error instanceof Refusal) {
    const body = error.body as { error?: unknown } | null;
    const sentence = typeof body?.error === "string" ? body.error : error.message;
    const advice = error.status === 401 ? ": say --token, set QUEEN_TOKEN, or run  queen context set" : "";
    return new CommandError(`${sentence}${advice} (${error.code})`, exitCodeOf(error.status), {
      cause: error,
    });
  }
  if (error instanceof QueenError) {
    const advice =
      error.code === "CONNECTION_FAILED"
        ? " Is a broker running there? Start one with  queen, or say --url."
        : "";
    return new ServerError(`${error.message}${advice}`, { cause: error });
  }
  return error;
}

/** A path of the API with names put in, percent-encoded. */
export function path(strings: TemplateStringsArray, ...names: string[]): string {
  return strings.reduce((text, part, index) => text + encodeURIComponent(names[index - 1]!) + part);
}
