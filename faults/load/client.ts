/**
 * A client of a load: it sends requests to one broker, turns to the next when that one fails it, and writes
 * down every request with its end. What is in doubt is sent again, as clients are told to.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type HistoryEvent, nowMs, type RequestEnded } from "@queen/test/checker/history";
import { type HttpAnswer, HttpClient } from "@queen/test/support/http";
import { randomFrom } from "@queen/test/support/load";
import { HistoryFile } from "./history-file.ts";
import type { LoadShape } from "./shape.ts";

export interface Work {
  readonly shape: LoadShape;
  readonly urls: readonly string[];
  readonly seed: number;
  readonly historyFolder: string;
  /** No new pushes, and no more leases that run out: what is left is consumed. */
  readonly enough: AbortSignal;
  /** Nothing at all any more. */
  readonly over: AbortSignal;
  /** How far the load is, for the rig. */
  readonly figures: { stored: number; delivered: number; acked: number };
}

interface Sent {
  readonly operation: RequestEnded["operation"];
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly body?: unknown;
  readonly waitMs?: number;
}

// Longer than a request may take: one that hangs is noticed, and its connection given up.
const ANSWER_MS_MAX = 45_000;
const PAUSE_MS = 50;
const CONFLICT = 409;
const OVERLOADED = 503;

export class Client {
  readonly name: string;
  readonly random: () => number;
  readonly #work: Work;
  readonly #file: HistoryFile;
  #at: number;
  #http: HttpClient;

  constructor(name: string, index: number, work: Work) {
    this.name = name;
    this.random = randomFrom(work.seed * 1_000 + index);
    this.#work = work;
    this.#file = new HistoryFile(work.historyFolder, name);
    this.#at = index % work.urls.length;
    this.#http = new HttpClient(this.broker);
  }

  get broker(): string {
    return this.#work.urls[this.#at % this.#work.urls.length]!;
  }

  record(event: HistoryEvent): void {
    this.#file.record(event);
  }

  /** One attempt; undefined: no answer, or one that says "later". */
  async attempt(sent: Sent, broker = this.broker): Promise<HttpAnswer | undefined> {
    const startedMs = nowMs();
    const http = broker === this.broker ? this.#http : new HttpClient(broker);
    let status = 0;
    let detail: string | undefined;
    let later: string | undefined;
    try {
      const signal = AbortSignal.timeout(ANSWER_MS_MAX);
      const answer = await http.request(sent.method, sent.path, sent.body, { signal });
      status = answer.status;
      if (isSurprise(sent, status)) detail = `${sent.method} ${sent.path}: ${answer.text.slice(0, 300)}`;
      if (status !== OVERLOADED) return answer;
      later = answer.text.slice(0, 300);
      return undefined;
    } catch (error) {
      const { name, message } = error as Error;
      if (name === "TimeoutError" || name === "AbortError") status = -1;
      if (message.includes("openapi.json")) detail = message;
      if (broker === this.broker) this.#next();
      return undefined;
    } finally {
      if (http !== this.#http) http.close();
      this.record({
        type: "request",
        atMs: nowMs(),
        operation: sent.operation,
        status,
        tookMs: nowMs() - startedMs,
        waitMs: sent.waitMs ?? 0,
        ...(detail === undefined ? {} : { detail }),
        ...(later === undefined ? {} : { later }),
      });
      if (status === 0 || status === OVERLOADED) await sleep(PAUSE_MS);
    }
  }

  close(): void {
    this.#http.close();
    this.#file.close();
  }

  #next(): void {
    this.#at++;
    this.#http.close();
    this.#http = new HttpClient(this.broker);
  }
}

const isSurprise = ({ operation }: Sent, status: number): boolean =>
  status >= 400 && status !== OVERLOADED && !(operation === "transaction" && status === CONFLICT);
