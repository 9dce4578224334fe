/** The control plane's questions about queues: plain calls on the connections for secondary operations. */
import type { Directory } from "../lanes/directory.ts";
import type { ParsedOptions } from "../operations/queue-options.ts";
import type { Session } from "../postgres/session.ts";
import * as statements from "../postgres/statements.ts";

export interface QueueSettings {
  readonly name: string;
  /** Null: not named. */
  readonly namespace: string | null;
  readonly task: string | null;
  readonly options: ParsedOptions["columns"];
  /** What is not named stays as it is. */
  readonly merge: boolean;
}

export interface ConfiguredQueue {
  readonly id: number;
  readonly namespace: string;
  readonly task: string;
  readonly partition: number;
  readonly row: Readonly<Record<string, unknown>>;
}

export interface QueuesOptions {
  readonly use: <T>(work: (session: Session) => Promise<T>) => Promise<T>;
  readonly directory: Directory;
  /** These queues were made or changed. */
  readonly changed: (ids: readonly number[]) => Promise<void>;
}

export class Queues {
  readonly #options: QueuesOptions;

  constructor(options: QueuesOptions) {
    this.#options = options;
  }

  async configure(settings: QueueSettings): Promise<ConfiguredQueue> {
    const { use, changed } = this.#options;
    const [configured] = await use((session) =>
      session.run(statements.configureQueue, [
        settings.name,
        settings.namespace,
        settings.task,
        JSON.stringify(settings.options),
        settings.merge,
      ]),
    );
    const { queue: row, partitionId: partition } = configured!;
    const id = row.id as number;
    await changed([id]);
    return { id, namespace: row.namespace as string, task: row.task as string, partition, row };
  }

  /** Returns whether the queue existed. */
  async delete(name: string): Promise<boolean> {
    const { use, directory } = this.#options;
    const [existed] = await use((session) => session.run(statements.deleteQueue, [name]));
    const queue = directory.queue(name);
    if (queue) await directory.refresh([queue.id]);
    return existed!;
  }

  /** The names of the queues of a namespace and a task ("" is any), the most urgent first. */
  of(namespace: string, task: string): Promise<string[]> {
    return this.#options.use((session) => session.run(statements.queuesOf, [namespace, task]));
  }

  /** Whether the database answers. */
  ping(): Promise<boolean> {
    return this.#options
      .use((session) => session.run(statements.ping, []))
      .then(
        () => true,
        () => false,
      );
  }
}
