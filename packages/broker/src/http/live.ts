/**
 * The live stream: a browser names what it shows, and hears of it when it changes. What it names are paths of GET
 * routes with their queries; each is read for all who follow it, at most once a second, less often where reading takes
 * long or the route says that it changes slowly. While nobody follows, nothing is read.
 */
import { BrokerError } from "@queen/protocol";
import type { Guard } from "../access/guard.ts";
import { sessionOf } from "../access/session-cookie.ts";
import { json } from "./answers.ts";
import type { Answer, Request, Sink } from "./route.ts";
import type { Router } from "./router.ts";
import { checkScope, type QueueOfPartition } from "./scope.ts";
import { Target } from "./target.ts";

export interface LiveOptions {
  readonly router: () => Router;
  readonly guard: Guard;
  readonly queueOfPartition: QueueOfPartition;
  /** What a client is told of an error. */
  readonly classify: (error: unknown) => BrokerError;
  readonly now: () => number;
}

interface Follower {
  readonly sink: Sink;
  readonly credential: string | undefined;
  readonly address: string;
  readonly feeds: readonly Feed[];
}

/** One path, and everybody who follows it. */
interface Feed {
  readonly key: string;
  readonly path: string;
  readonly request: Request;
  readonly target: Target;
  readonly followers: Set<Follower>;
  isReading: boolean;
  nextAtMs: number;
  /** The event as it was last sent. */
  last: string | undefined;
}

const TICK_MS = 1_000;
// Readings take at most this part of the time.
const PAUSE_TIMES = 10;
const PATHS_MAX = 12;

export class Live {
  readonly #options: LiveOptions;
  readonly #feeds = new Map<string, Feed>();
  readonly #followers = new Set<Follower>();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: LiveOptions) {
    this.#options = options;
  }

  /** Paths are separated by spaces. */
  async follow(request: Request, paths: string | undefined): Promise<Answer> {
    const named = [...new Set((paths ?? "").split(" ").filter((path) => path !== ""))];
    if (named.length === 0 || named.length > PATHS_MAX) {
      throw new BrokerError("VALIDATION_FAILED", `follow must name 1 to ${PATHS_MAX} paths.`);
    }
    const found = await Promise.all(named.map((path) => this.#feedOrRefusal(path, request)));
    const feeds = found.flatMap((each) => (typeof each === "string" ? [] : [each]));
    const refusals = found.flatMap((each) => (typeof each === "string" ? [each] : []));
    const { authorization } = request.headers;
    const credential = typeof authorization === "string" ? authorization : sessionOf(request.headers);
    return {
      status: 200,
      contentType: "text/event-stream",
      headers: { "Cache-Control": "no-store", "X-Accel-Buffering": "no" },
      stream: (sink) => {
        for (const refusal of refusals) sink.write(refusal);
        this.#join({ sink, credential, address: request.address, feeds });
      },
    };
  }

  /** What cannot be followed is told once, and does not keep the rest from being followed. */
  async #feedOrRefusal(path: string, request: Request): Promise<Feed | string> {
    try {
      return await this.#feed(path, request);
    } catch (error) {
      return eventOf(path, this.#told(error));
    }
  }

  /** Finds what a path means, and checks that the follower may read it. */
  async #feed(url: string, from: Request): Promise<Feed> {
    const { identity } = from;
    const target = new Target(this.#options.router(), "GET", url);
    const { path, route, params } = target;
    const isFollowable = (route.access === "read" || route.access === "admin") && path.startsWith("/api/");
    if (!isFollowable || route.path === from.path) {
      throw new BrokerError(
        "VALIDATION_FAILED",
        `${path} cannot be followed: name routes that show something.`,
      );
    }
    identity.check(route.access);
    const request: Request = {
      ...from,
      requestId: () => "live",
      path,
      params,
      headers: {},
      text: () => "",
      json: () => undefined,
      onHangUp: () => undefined,
    };
    if (identity.isLimited) {
      await checkScope(route, request, target.query, this.#options.queueOfPartition);
    }
    // Those who may use every queue see the same; who may use some is answered for himself.
    const key = identity.isLimited ? `${identity.name} ${url}` : url;
    return (
      this.#feeds.get(key) ?? {
        key,
        path: url,
        request,
        target,
        followers: new Set(),
        isReading: false,
        nextAtMs: 0,
        last: undefined,
      }
    );
  }

  #join(follower: Follower): void {
    const { sink, feeds } = follower;
    this.#followers.add(follower);
    for (const each of feeds) {
      const feed = this.#feeds.get(each.key) ?? each;
      this.#feeds.set(feed.key, feed);
      feed.followers.add(follower);
      if (feed.last !== undefined) sink.write(feed.last);
    }
    sink.onEnd(() => this.#leave(follower));
    sink.write("retry: 2000\n\n");
    this.#timer ??= setInterval(() => this.#tick(), TICK_MS).unref();
    this.#readDue();
  }

  #leave(follower: Follower): void {
    this.#followers.delete(follower);
    for (const [key, feed] of this.#feeds) {
      feed.followers.delete(follower);
      if (feed.followers.size === 0) this.#feeds.delete(key);
    }
    if (this.#followers.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #tick(): void {
    this.#readDue();
    if (!this.#options.guard.isOn) return;
    for (const follower of this.#followers) void this.#checkStillKnown(follower);
  }

  /** A credential that was revoked or ran out ends the stream within a second, as it is refused elsewhere. */
  async #checkStillKnown({ credential, address, sink }: Follower): Promise<void> {
    try {
      await this.#options.guard.identify("read", { path: "", authorization: credential, address });
    } catch (error) {
      if (this.#options.classify(error).status !== 401) return;
      sink.write("event: end\ndata: {}\n\n");
      sink.end();
    }
  }

  #readDue(): void {
    const nowMs = this.#options.now();
    for (const feed of this.#feeds.values()) {
      if (!feed.isReading && feed.nextAtMs <= nowMs) void this.#read(feed);
    }
  }

  async #read(feed: Feed): Promise<void> {
    const { now } = this.#options;
    const startedAtMs = now();
    feed.isReading = true;
    const event = await this.#event(feed);
    feed.isReading = false;
    const pauseMs = Math.max(
      TICK_MS,
      feed.target.route.followedEveryMs ?? 0,
      (now() - startedAtMs) * PAUSE_TIMES,
    );
    feed.nextAtMs = startedAtMs + pauseMs - TICK_MS / 2; // ticks are not exact
    const isNew = event !== feed.last;
    feed.last = event;
    // Who is slow to read misses an event; the next one tells everything again.
    for (const { sink } of feed.followers) if (isNew && !sink.isBehind) sink.write(event);
  }

  async #event({ path, request, target }: Feed): Promise<string> {
    try {
      const { route, query } = target;
      return eventOf(path, await route.handle(request, { query, body: undefined }));
    } catch (error) {
      return eventOf(path, this.#told(error));
    }
  }

  #told(error: unknown): Answer {
    const { status, message, code } = this.#options.classify(error);
    return json(status, { error: message, code });
  }
}

function eventOf(path: string, answer: Answer): string {
  const text = answer.body ?? "null";
  const body = answer.isText ? text : Buffer.from(text, "latin1").toString();
  const total = answer.headers?.["Queen-Total"] ?? null;
  const data = `{"path":${JSON.stringify(path)},"status":${answer.status},"total":${total},"body":${body}}`;
  return `data: ${data.replaceAll(/\r\n|\r|\n/g, "\ndata: ")}\n\n`;
}
