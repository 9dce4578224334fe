/** A well-behaved client beside an attack: it pushes and pops its own queue all the time and notes every error. */
import { setTimeout as sleep } from "node:timers/promises";
import { HttpClient } from "../support/http.ts";

const PAUSE_MS = 20;

export class ControlClient {
  readonly #client: HttpClient;
  readonly #queue: string;
  #isRunning = true;
  #done: Promise<void> | undefined;
  requests = 0;
  readonly errors: string[] = [];

  constructor(url: string, queue: string) {
    this.#client = new HttpClient(url);
    this.#queue = queue;
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
    for (let number = 0; this.#isRunning; number += 1) {
      try {
        const [pushed] = await this.#client.push([{ queue: this.#queue, payload: number }]);
        const { messages } = await this.#client.pop(this.#queue, { autoAck: true, consumerGroup: "control" });
        if (pushed?.status !== "queued") this.errors.push(`push ${number}: ${pushed?.status}`);
        if (messages[0]?.data !== number) this.errors.push(`pop ${number} gave ${messages[0]?.data}`);
        this.requests += 2;
      } catch (error) {
        this.errors.push(`${number}: ${(error as Error).message}`);
      }
      await sleep(PAUSE_MS);
    }
  }
}
