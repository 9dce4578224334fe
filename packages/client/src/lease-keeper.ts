/**
 * The lease keeper holds the leases of messages in hand and says when one is lost. The renewals are made by a
 * worker thread, started with the first lease, which sees them on a board; where none can be started, or `fetch` is not
 * the runtime's, by a timer of this thread.
 */
import { DataPlane } from "./data-plane.ts";
import { LeaseLostError } from "./errors.ts";
import { canShare, LeaseBoard } from "./lease-board.ts";
import { type Lease, LeaseRenewer } from "./lease-renewer.ts";
import type { FromWorker, ToWorker } from "./lease-worker.ts";
import type { Transport, TransportOptions } from "./transport/transport.ts";

export interface Held {
  release(): void;
}

export interface LeaseKeeperOptions {
  readonly transport: Transport;
  readonly transportOptions: TransportOptions;
  /** Whether a worker thread may be used. */
  readonly useWorker: boolean;
  readonly warn: (message: string, cause?: unknown) => void;
}

interface Renewals {
  /** Returns what lets the lease go. */
  hold(lease: Lease): () => void;
  stop(): void;
}

interface WorkerLike {
  postMessage(message: ToWorker): void;
  terminate(): unknown;
  unref?(): void;
  on?(event: "message" | "error", listener: (value: never) => void): void;
  addEventListener?(event: "message" | "error", listener: (event: never) => void): void;
}

interface Holder {
  readonly lease: Lease;
  readonly lost: (error: LeaseLostError) => void;
  letGo: () => void;
}

export class LeaseKeeper {
  readonly #options: LeaseKeeperOptions;
  readonly #held = new Map<string, Holder>();
  #renewals: Promise<Renewals> | undefined;

  constructor(options: LeaseKeeperOptions) {
    this.#options = options;
  }

  /** Starts the worker. Before the first pop: a thread takes its time, and a lease may be short. */
  async prepare(): Promise<void> {
    this.#renewals ??= this.#start();
    await this.#renewals;
  }

  /** Resolves when somebody renews the lease: a handler that starts then may block. */
  async hold(lease: Lease, lost: (error: LeaseLostError) => void): Promise<Held> {
    this.#renewals ??= this.#start();
    const renewals = await this.#renewals;
    const holder: Holder = { lease, lost, letGo: renewals.hold(lease) };
    this.#held.set(lease.leaseId, holder);
    return {
      release: () => {
        this.#held.delete(lease.leaseId);
        holder.letGo();
      },
    };
  }

  async stop(): Promise<void> {
    (await this.#renewals)?.stop();
    this.#renewals = undefined;
  }

  #lost(leaseId: string, reason: string): void {
    const holder = this.#held.get(leaseId);
    this.#held.delete(leaseId);
    holder?.lost(new LeaseLostError(leaseId, reason));
  }

  async #start(): Promise<Renewals> {
    if (this.#options.useWorker) {
      try {
        return await this.#startWorker();
      } catch (error) {
        this.#options.warn("Leases are renewed without a worker thread, which cannot be started.", error);
      }
    }
    return this.#startTimers();
  }

  #startTimers(): Renewals {
    const renewer = new LeaseRenewer(new DataPlane(this.#options.transport), {
      lost: (leaseId, reason) => this.#lost(leaseId, reason),
      warn: this.#options.warn,
    });
    return {
      hold: (lease) => {
        renewer.hold(lease);
        return () => renewer.release(lease.leaseId);
      },
      stop: () => {
        for (const leaseId of this.#held.keys()) renewer.release(leaseId);
      },
    };
  }

  async #startWorker(): Promise<Renewals> {
    const { token, fetch: _, ...options } = this.#options.transportOptions;
    const credential = async (): Promise<string | undefined> =>
      typeof token === "function" ? token() : token;
    const worker = await newWorker();
    const tell = (message: ToWorker): void => worker.postMessage(message);
    let isReady = false;
    await new Promise<void>((resolve, reject) => {
      listen(worker, "message", (message: FromWorker) => {
        if (message.kind === "lost") this.#lost(message.leaseId, message.reason);
        else if (message.kind === "warning") this.#options.warn(message.message);
        else resolve();
      });
      listen(worker, "error", (error: unknown) => (isReady ? this.#replace(error) : reject(error)));
    });
    isReady = true;
    worker.unref?.(); // a program that has nothing else to do may end
    tell({ kind: "start", options });
    let told = await credential();
    tell({ kind: "token", token: told });
    const hold = holderOn(tell);
    return {
      hold: (lease) => {
        if (typeof token === "function")
          credential().then(
            (value) => {
              if (value !== told) tell({ kind: "token", token: value });
              told = value;
            },
            (error) => this.#options.warn("No token for the renewal of leases.", error),
          );
        return hold(lease);
      },
      stop: () => void worker.terminate(),
    };
  }

  /** The worker died: its leases are renewed by timers from now on. */
  #replace(error: unknown): void {
    this.#options.warn("Leases are renewed without a worker thread, because it ended.", error);
    const timers = this.#startTimers();
    this.#renewals = Promise.resolve(timers);
    for (const holder of this.#held.values()) holder.letGo = timers.hold(holder.lease);
  }
}

/** How the worker learns of leases: from the board, or by messages. */
function holderOn(tell: (message: ToWorker) => void): Renewals["hold"] {
  if (canShare()) {
    const board = new LeaseBoard(
      (memory) => tell({ kind: "slot", memory }),
      () => tell({ kind: "wake" }),
    );
    tell({ kind: "board", sleep: board.sleep });
    return (lease) => board.hold(lease);
  }
  return (lease) => {
    tell({ kind: "hold", lease });
    return () => tell({ kind: "release", leaseId: lease.leaseId });
  };
}

async function newWorker(): Promise<WorkerLike> {
  const isNode =
    (globalThis as { process?: { versions?: { node?: string } } }).process?.versions?.node !== undefined;
  if (!isNode)
    return new Worker(new URL("./lease-worker.js", import.meta.url), { type: "module" }) as WorkerLike;
  const module = "node:worker_threads"; // by name, so that bundlers for browsers do not look for it
  const threads = (await import(/* @vite-ignore */ /* webpackIgnore: true */ module)) as {
    Worker: new (url: URL, options: object) => WorkerLike;
  };
  return new threads.Worker(new URL("./lease-worker.js", import.meta.url), { name: "queen-leases" });
}

/** Node hands over the message, a browser an event with it. */
function listen<T>(worker: WorkerLike, event: "message" | "error", listener: (value: T) => void): void {
  if (worker.on) worker.on(event, listener as (value: never) => void);
  else
    worker.addEventListener?.(event, ((given: { data?: T; message?: string }) =>
      listener((event === "message" ? given.data : given.message) as T)) as (event: never) => void);
}
