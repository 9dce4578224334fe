/** The control plane: what operators list, configure, move, put back and clear. */
import { Clearing } from "../control/clearing.ts";
import { ConsumerGroups } from "../control/consumer-groups.ts";
import { DeadLetters } from "../control/dead-letters.ts";
import { Figures } from "../control/figures.ts";
import { Messages } from "../control/messages.ts";
import { Queues } from "../control/queues.ts";
import { Traces } from "../control/traces.ts";
import type { ReadTimestamp } from "../http/times.ts";
import { isDeterministic } from "../postgres/errors.ts";
import * as statements from "../postgres/statements.ts";
import type { Use } from "./connections.ts";
import type { Engine } from "./engine.ts";

export interface ControlPlaneOptions {
  readonly use: Use;
  readonly engine: Pick<Engine, "memory" | "news" | "popper" | "hints">;
  readonly workerIndex: number;
  readonly now: () => number;
}

export interface ControlPlane {
  readonly groups: ConsumerGroups;
  readonly letters: DeadLetters;
  readonly messages: Messages;
  readonly traces: Traces;
  readonly clearing: Clearing;
  readonly figures: Figures;
  readonly queues: Queues;
  /** Undefined: PostgreSQL does not read it as a time. */
  readonly readTimestamp: ReadTimestamp;
}

// Others are told at once of so many lanes that an operator moved; they find the rest by looking.
const LANES_TOLD_MAX = 1_000;

export function controlPlaneOf({ use, engine, workerIndex, now }: ControlPlaneOptions): ControlPlane {
  const { popper, hints } = engine;
  const { directory, rewritten } = engine.memory;
  const { bus, appendedElsewhere, changed } = engine.news;
  const groups = new ConsumerGroups({
    use,
    moved: (queue, group, ready) => {
      popper.moved(queue, group);
      for (const partition of ready.slice(0, LANES_TOLD_MAX)) bus.released(partition);
    },
  });
  const letters = new DeadLetters({
    use,
    appended: (partition, queue, nextOffset) => {
      appendedElsewhere(partition, queue, nextOffset); // by the database, not by this worker's pusher
      bus.appended(partition, queue, nextOffset);
    },
  });
  const messages = new Messages({ use, letters, rewritten, changed });
  return {
    groups,
    letters,
    messages,
    traces: new Traces({ use, messages, workerId: String(workerIndex) }),
    clearing: new Clearing({ use, letters, changed }),
    figures: new Figures(use, now),
    queues: new Queues({ use, directory, changed: (ids) => hints.queuesChanged(ids) }),
    readTimestamp: async (text) => {
      try {
        return (await use((session) => session.run(statements.readTimestamp, [text])))[0];
      } catch (error) {
        if (isDeterministic(error)) return undefined;
        throw error;
      }
    },
  };
}
