/**
 * What a route is: how it is found, who may use it, what it takes and what it answers. The table of routes
 * serves requests, checks their input, and is printed as the OpenAPI document, so the three cannot differ.
 */
import type { z } from "zod";
import type { Identity } from "../access/identity.ts";
import type { Access } from "../access/roles.ts";
import type { Parameter } from "./parameters.ts";

export interface Answer {
  readonly status: number;
  /** One character per byte unless `isText`. */
  readonly body?: string;
  readonly isText?: boolean;
  readonly contentType?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** What a change was about, for the log, where the path does not name it. */
  readonly about?: Readonly<Record<string, string>>;
  /** Instead of a body: called once, when the head of the answer is out. */
  readonly stream?: (sink: Sink) => void;
}

/** Where an answer goes that has no end yet. */
export interface Sink {
  write(text: string): void;
  /** Whether the client has not taken yet what was written. */
  readonly isBehind: boolean;
  end(): void;
  /** Called once, whoever ended it. */
  onEnd(listener: () => void): void;
}

export interface Request {
  /** Who sends it. */
  readonly identity: Identity;
  readonly address: string;
  /** A call, since an accessor in an object of every request would cost it a hidden class of its own. */
  requestId(): string;
  readonly method: string;
  readonly path: string;
  readonly params: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** The body as a latin1 string (one character per byte), checked to be UTF-8. */
  text(): string;
  /** The body as JSON; undefined where there is none. */
  json(): unknown;
  /** Called once, when the connection closes before the answer was written out; at once if it has already. */
  onHangUp(listener: () => void): void;
}

export const TAGS = [
  "Data plane",
  "Queues",
  "Messages",
  "Dead letters",
  "Consumer groups",
  "Traces",
  "Status",
  "Analytics",
  "System",
] as const;

export type QueryShape = Readonly<Record<string, Parameter<unknown>>>;
export type QueryOf<Q extends QueryShape> = {
  readonly [K in keyof Q]: Q[K] extends Parameter<infer T> ? T : never;
};

/** What an answer with a status holds. Without a shape it has no body; a string is the type of a text. */
export interface AnswerShape {
  readonly summary: string;
  readonly shape?: z.ZodType | string;
  readonly headers?: Readonly<Record<string, string>>;
}

interface RouteFacts {
  readonly method: "GET" | "POST" | "DELETE" | "PUT";
  /** With `:name` for a parameter. */
  readonly path: string;
  readonly access: Access;
  /** `handler`: the handler itself checks which queues a sender may use. */
  readonly scope?: "handler";
  readonly tag: (typeof TAGS)[number];
  /** A sentence without its full stop. */
  readonly summary: string;
  /** Who follows it in the live stream is told at most so often; absent: every second. */
  readonly followedEveryMs?: number;
  /** Answers that are no errors; any route may answer an error. */
  readonly answers: Readonly<Record<number, AnswerShape>>;
}

export interface Route extends RouteFacts {
  readonly query: QueryShape;
  /** The body's shape, and whether the handler reads the bytes itself. */
  readonly body: { readonly shape: z.ZodType; readonly readByHandler: boolean } | undefined;
  readonly handle: (request: Request, input: { query: unknown; body: unknown }) => Promise<Answer> | Answer;
}

export interface RouteDefinition<Q extends QueryShape, B extends z.ZodType> extends RouteFacts {
  readonly query?: Q;
  /** Checked before the handler is called; an absent body, `null` and `[]` count as `{}`. */
  readonly body?: B;
  /** The shape of a body that the handler reads and checks itself. */
  readonly bytes?: z.ZodType;
  readonly handle: (
    request: Request,
    input: { readonly query: QueryOf<Q>; readonly body: z.output<B> },
  ) => Promise<Answer> | Answer;
}

// biome-ignore lint/complexity/noBannedTypes: no query at all
export function route<Q extends QueryShape = {}, B extends z.ZodType = z.ZodUndefined>(
  definition: RouteDefinition<Q, B>,
): Route {
  const { query, body, bytes, handle, ...facts } = definition;
  const shape = body ?? bytes;
  return {
    ...facts,
    query: query ?? {},
    body: shape && { shape, readByHandler: bytes !== undefined },
    handle: (request, input) =>
      handle(request, { query: input.query as QueryOf<Q>, body: input.body as z.output<B> }),
  };
}
