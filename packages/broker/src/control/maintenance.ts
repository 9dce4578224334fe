/**
 * The modes of maintenance: with push maintenance pushes wait on the brokers' disks, with pop maintenance pops get
 * nothing.
 * They are rows of queen.system_state, so that they outlive every broker and anybody may switch them by SQL;
 * a worker holds what it read last, and a hint tells it to read again.
 */
import type { Session } from "../postgres/session.ts";
import * as statements from "../postgres/statements.ts";

export type MaintenanceMode = keyof typeof statements.MAINTENANCE_KEYS;
export type MaintenanceModes = Readonly<Record<MaintenanceMode, boolean>>;

export interface MaintenanceOptions {
  readonly use: <T>(work: (session: Session) => Promise<T>) => Promise<T>;
  /** Resolves when what was committed before the call is known here. */
  readonly look: () => Promise<void>;
  readonly changed: (modes: MaintenanceModes) => void;
}

export class Maintenance {
  readonly #options: MaintenanceOptions;
  #modes: MaintenanceModes = { push: false, pop: false };

  constructor(options: MaintenanceOptions) {
    this.#options = options;
  }

  /** As this worker knows them. */
  get modes(): MaintenanceModes {
    return this.#modes;
  }

  async read(): Promise<MaintenanceModes> {
    const { push, pop } = statements.MAINTENANCE_KEYS;
    const [row] = await this.#options.use((session) => session.run(statements.readMaintenance, [push, pop]));
    return row!;
  }

  /** Reads what counts from now on. Calls must follow one another: the last one to be read counts. */
  async refresh(): Promise<void> {
    const modes = await this.read();
    const { push, pop } = this.#modes;
    this.#modes = modes;
    if (push !== modes.push || pop !== modes.pop) this.#options.changed(modes);
  }

  async set(mode: MaintenanceMode, enabled: boolean): Promise<void> {
    const { use, look } = this.#options;
    const key = statements.MAINTENANCE_KEYS[mode];
    await use((session) => session.run(statements.setMaintenance, [key, enabled]));
    await look();
  }
}
