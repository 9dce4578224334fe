/** A well-behaved client beside an attack: it pushes and pops its own queue all the time and notes every error. */
import { setTimeout as sleep } from "node:timers/promises";
import { type HttpAnswer, HttpClient } from "../support/http.ts";

const PAUSE_MS = 20;

export class ControlClient {
  readonly #client: HttpClient;
  readonly #queue: string;
  readonly #options: { headers?: Record<string, string> };
  #isRunning = true;
  #done: Promise<void> | undefined;
  readonly #tookMs: number[] = [];
  readonly errors: string[] = [];

  /** With a credential, where the broker wants one. */
  constructor(url: string, queue: string, authorization?: string) {
    this.#client = new HttpClient(url);
    this.#queue = queue;
    this.#options = authorization === undefined ? {} : { headers: { authorization } };
  }

  get requests(): number {
    return this.#tookMs.length;
  }

  /** Within this time 99 of 100 requests were answered. */
  get p99Ms(): number {
    const sorted = this.#tookMs.toSorted((a, b) => a - b);
    return sorted[Math.floor(sorted.length * 0.99)] ?? Number.NaN;
  }

  start(): void {
    this.#done = this.#run();
  }

  async stop(): Promise<void> {
    this.#isRunning = false;
    await this.#done;
    this.#client.close();
  }

  async #run(): Promise<void> {
    const pop = `/api/v1/pop/queue/${this.#queue}?autoAck=true&consumerGroup=control`;
    for (let number = 0; this.#isRunning; number += 1) {
      try {
        const items = [{ queue: this.#queue, payload: number }];
        const pushed = await this.#timed("POST", "/api/v1/push", { items });
        const popped = await this.#timed("GET", pop);
        if (pushed.json?.[0]?.status !== "queued") this.errors.push(`push ${number}: ${pushed.text}`);
        const got = popped.json?.messages?.[0]?.data;
        if (got !== number) this.errors.push(`pop ${number} gave ${got} (${popped.status})`);
      } catch (error) {
        this.errors.push(`${number}: ${(error as Error).message}`);
      }
      await sleep(PAUSE_MS);
    }
  }

  async #timed(method: string, path: string, body?: unknown): Promise<HttpAnswer> {
    const startedAtMs = performance.now();
    const answer = await this.#client.request(method, path, body, this.#options);
    this.#tookMs.push(performance.now() - startedAtMs);
    return answer;
  }
}
