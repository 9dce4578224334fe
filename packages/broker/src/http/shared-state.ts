/** The handlers of what workers know of each other, and of the request to look at a queue. */
import type { MaintenanceModes } from "../control/maintenance.ts";
import { checkName } from "../operations/names.ts";
import { json } from "./answers.ts";
import type { Answer } from "./route.ts";

export interface SharedStateOptions {
  readonly isEnabled: boolean;
  /** Names this worker among all workers of all brokers. */
  readonly serverId: string;
  readonly figures: () => {
    readonly isRunning: boolean;
    readonly queues: number;
    readonly hits: number;
    readonly misses: number;
    readonly peers: number;
    readonly lostPeers: number;
    readonly heard: number;
  };
  readonly modes: () => MaintenanceModes;
  /** Has parked pops of the queue, or of one of its lanes, look for work, here and elsewhere. */
  readonly nudge: (queue: string, partition: string | undefined) => Promise<void>;
}

export class SharedState {
  readonly #options: SharedStateOptions;

  constructor(options: SharedStateOptions) {
    this.#options = options;
  }

  /** Everything is from memory. Restarts cannot be told: a worker that starts is a new one. */
  shown(): Record<string, unknown> {
    const { isEnabled, serverId, figures, modes } = this.#options;
    const { isRunning, queues, hits, misses, peers, lostPeers, heard } = figures();
    const asked = hits + misses;
    return {
      enabled: isEnabled,
      running: isRunning,
      server_id: serverId,
      queue_config_cache: {
        size: queues,
        hits,
        misses,
        hit_rate: asked > 0 ? Math.round((hits / asked) * 1000) / 1000 : 0,
      },
      server_health: {
        servers_tracked: peers + lostPeers,
        servers_alive: peers,
        servers_dead: lostPeers,
        heartbeats_received: heard,
        restarts_detected: 0,
      },
      maintenance_mode: modes().push,
      pop_maintenance_mode: modes().pop,
    };
  }

  answer(): Answer {
    return json(200, this.shown());
  }

  async notify(queue: string, partition: string | null | undefined): Promise<Answer> {
    const { nudge } = this.#options;
    await nudge(
      checkName(queue, "queue", { allowEmpty: true }),
      partition == null ? undefined : checkName(partition, "partition"),
    );
    return json(200, { status: "ok" });
  }
}
