/**
 * Finds the server that can be used among several. All connections of a worker share it: when one of them has found the
 * primary, the others begin there; and while there is none, one searches and the others wait for what it finds, because
 * servers that wait for their promotion have better things to do than to answer all of them.
 */
import { ConnectionLostError } from "./errors.ts";
import type { Server } from "./session.ts";
import { staggered } from "./staggered.ts";

// The machine of a primary that is lost does not even refuse: nobody waits for it longer than that.
const HEAD_START_MS = 250;

export class PrimarySearch<Connection> {
  readonly #servers: readonly Server[];
  readonly #discard: (connection: Connection) => void;
  #last: Server | undefined;
  #isLost = false;
  #running: Promise<Connection> | undefined;

  /** `discard`: it was found after another one. */
  constructor(servers: readonly Server[], discard: (connection: Connection) => void) {
    this.#servers = servers;
    this.#discard = discard;
  }

  /** `connect` rejects where a server cannot be used. */
  async find(connect: (server: Server) => Promise<Connection>): Promise<Connection> {
    if (this.#running) {
      await this.#running;
      return this.#search(connect);
    }
    const search = this.#search(connect);
    if (!this.#isLost) return search;
    this.#running = search;
    try {
      return await search;
    } finally {
      this.#running = undefined;
    }
  }

  async #search(connect: (server: Server) => Promise<Connection>): Promise<Connection> {
    const last = this.#last;
    const servers = last ? [last, ...this.#servers.filter((server) => server !== last)] : this.#servers;
    const attempts = servers.map((server) => async () => {
      const connection = await connect(server);
      this.#last = server;
      this.#isLost = false;
      return connection;
    });
    try {
      return await staggered(attempts, { headStartMs: HEAD_START_MS, discard: this.#discard });
    } catch (error) {
      this.#isLost = true;
      const failures = (error as AggregateError).errors as Error[];
      if (failures.length === 1) throw failures[0];
      const reasons = failures.map((failure) => failure.message).join("; ");
      throw new ConnectionLostError(`no server can be used: ${reasons || "no host is given"}`, {
        outcomeUnknown: false,
        cause: error,
      });
    }
  }
}
