/** A load is the work of one scenario as data; each kind has a function that runs it and returns its figures. */
import type { LoadContext } from "../load.ts";
import type { Figures } from "../measure.ts";
import { type AppendLoad, runAppend } from "./append.ts";
import { type BurstLoad, runBurst } from "./burst.ts";
import { type DrainLoad, runDrain } from "./drain.ts";
import { type FlowLoad, runFlow } from "./flow.ts";
import { type IdleLoad, runIdle } from "./idle.ts";
import { type LanesLoad, runLanes } from "./lanes.ts";
import { type NamedPopsLoad, runNamedPops } from "./named-pops.ts";
import { type ParkedLoad, runParked } from "./parked.ts";
import { type PeerLoad, runPeer } from "./peer.ts";
import { type PipeLoad, runPipe } from "./pipe.ts";
import { type PushLoad, runPush } from "./push.ts";
import { runSparse, type SparseLoad } from "./sparse.ts";

export type Load =
  | PushLoad
  | DrainLoad
  | NamedPopsLoad
  | BurstLoad
  | FlowLoad
  | SparseLoad
  | ParkedLoad
  | PipeLoad
  | IdleLoad
  | LanesLoad
  | AppendLoad
  | PeerLoad;

export function runLoad(load: Load, context: LoadContext): Promise<Figures> {
  switch (load.kind) {
    case "push":
      return runPush(load, context);
    case "drain":
      return runDrain(load, context);
    case "named-pops":
      return runNamedPops(load, context);
    case "burst":
      return runBurst(load, context);
    case "flow":
      return runFlow(load, context);
    case "sparse":
      return runSparse(load, context);
    case "parked":
      return runParked(load, context);
    case "pipe":
      return runPipe(load, context);
    case "idle":
      return runIdle(load, context);
    case "lanes":
      return runLanes(load, context);
    case "append":
      return runAppend(load, context);
    case "peer":
      return runPeer(load, context);
  }
}
