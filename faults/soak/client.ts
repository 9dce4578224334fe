/** A client of a soak: one connection to one broker at a time. */
import { setTimeout as sleep } from "node:timers/promises";
import { HttpConnection } from "@queen/bench/http-connection";
import { nowMs, type RequestEnded } from "@queen/test/checker/history";
import type { SoakLoad } from "./soak-load.ts";

interface Sent {
  readonly operation: RequestEnded["operation"];
  readonly path: string;
  readonly body?: string;
  readonly waitMs?: number;
}

const PAUSE_MS = 50;
const OVERLOADED = 503;

export class SoakClient {
  readonly #load: SoakLoad;
  #at: number;
  #connection: HttpConnection;

  constructor(load: SoakLoad, at: number) {
    this.#load = load;
    this.#at = at % load.urls.length;
    this.#connection = this.#open();
  }

  get broker(): string {
    return this.#load.urls[this.#at]!;
  }

  /** Turns to the next broker. */
  move(): void {
    this.close();
    this.#at = (this.#at + 1) % this.#load.urls.length;
    this.#connection = this.#open();
  }

  close(): void {
    this.#connection.destroy();
  }

  /** The answer's JSON, null where it has no body; undefined: no answer, or one that says "later". */
  async attempt({ operation, path, body, waitMs = 0 }: Sent): Promise<unknown> {
    const startedMs = nowMs();
    const { figures } = this.#load;
    let status = 0;
    try {
      const answer = await this.#connection.request(body === undefined ? "GET" : "POST", path, body);
      status = answer.status;
      if (status >= 200 && status < 300) return status === 204 ? null : JSON.parse(answer.body.toString());
      if (status !== OVERLOADED)
        this.#load.surprise(`${operation} ${status}: ${answer.body.toString("utf8", 0, 300)}`);
      return undefined;
    } catch {
      return undefined;
    } finally {
      const atMs = nowMs();
      const name = `${operation} ${status}`;
      figures.requests[name] = (figures.requests[name] ?? 0) + 1;
      this.#load.observe({ type: "request", atMs, operation, status, tookMs: atMs - startedMs, waitMs });
      if (status === 0 || status === OVERLOADED) await sleep(PAUSE_MS);
    }
  }

  #open(): HttpConnection {
    const { hostname, port } = new URL(this.broker);
    return new HttpConnection({ host: hostname, port: Number(port) });
  }
}
