/** A Queen is a client of one or several brokers that share a database. */
import { type QueenOptions, transportOptions } from "./options.ts";
import type { Answer } from "./transport/call.ts";
import { type RequestOptions, Transport } from "./transport/transport.ts";

export class Queen {
  readonly #transport: Transport;

  constructor(options: string | QueenOptions = {}) {
    this.#transport = new Transport(transportOptions(options));
  }

  /** The brokers, and whether the last request to each had an answer. */
  get endpoints(): readonly { readonly url: string; readonly isHealthy: boolean }[] {
    return this.#transport.endpoints.map(({ url, isHealthy }) => ({ url, isHealthy }));
  }

  /** Any request of the HTTP API; the JSON of its answer, or null without a body. */
  async request<T = unknown>(method: string, path: string, options?: RequestOptions): Promise<T> {
    return (await this.#transport.send<T>(method, path, options)).body;
  }

  /** As `request`, with the status and the headers. */
  answer<T = unknown>(method: string, path: string, options?: RequestOptions): Promise<Answer<T>> {
    return this.#transport.send<T>(method, path, options);
  }

  /** Ends what is under way. */
  async close(): Promise<void> {
    this.#transport.close();
  }
}
