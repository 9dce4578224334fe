/** A well-behaved client beside an attack: it pushes and pops its own queue all the time and notes every error. */
import { setTimeout as sleep } from "node:timers/promises";
import { HttpClient } from "../support/http.ts";

const PAUSE_MS = 20;

export class ControlClient {
  readonly #client: HttpClient;
  readonly #queue: string;
  readonly #options: { headers?: Record<string, string> };
  #isRunning = true;
  #done: Promise<void> | undefined;
  requests = 0;
  readonly errors: string[] = [];

  /** With a credential, where the broker wants one. */
  constructor(url: string, queue: string, authorization?: string) {
    this.#client = new HttpClient(url);
    this.#queue = queue;
    this.#options = authorization === undefined ? {} : { headers: { authorization } };
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
        const pushed = await this.#client.request("POST", "/api/v1/push", { items }, this.#options);
        const popped = await this.#client.request("GET", pop, undefined, this.#options);
        if (pushed.json?.[0]?.status !== "queued") this.errors.push(`push ${number}: ${pushed.text}`);
        const got = popped.json?.messages?.[0]?.data;
        if (got !== number) this.errors.push(`pop ${number} gave ${got} (${popped.status})`);
        this.requests += 2;
      } catch (error) {
        this.errors.push(`${number}: ${(error as Error).message}`);
      }
      await sleep(PAUSE_MS);
    }
  }
}
