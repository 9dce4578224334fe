/** What the parts of one client share. */
import type { Acker } from "./acker.ts";
import type { DataPlane } from "./data-plane.ts";
import type { LeaseKeeper } from "./lease-keeper.ts";
import type { AckStatus, Message } from "./message.ts";
import type { Pusher } from "./pusher.ts";
import type { Telemetry } from "./telemetry.ts";
import type { Transport } from "./transport/transport.ts";

export interface Core {
  readonly transport: Transport;
  readonly data: DataPlane;
  readonly pusher: Pusher;
  readonly acker: Acker;
  readonly keeper: LeaseKeeper;
  readonly telemetry: Telemetry;
  /** Messages that the user has settled by hand, and how: nobody settles them again. */
  readonly settled: WeakMap<Message, AckStatus>;
  /** Consumers, iterators and buffers that are at work; closing the client ends them. */
  readonly open: Set<Closable>;
  /** Something went wrong that the client deals with by itself. */
  readonly warn: (message: string, cause?: unknown) => void;
}

export interface Closable {
  /** Finishes or gives back what is in hand; `hurry` is aborted when there is no more time for it. */
  close(hurry: AbortSignal): Promise<void>;
}
