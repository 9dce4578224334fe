/** What queues need of their client, beside what all parts share. */
import type { Admin } from "./admin/admin.ts";
import type { Buffer, BufferOptions } from "./buffer.ts";
import type { Core } from "./core.ts";
import type { PushItem } from "./data-plane.ts";

export interface QueenCore extends Core {
  readonly admin: Admin;
  /** The buffer of a queue; made if there is none. */
  buffer(
    queue: string,
    options: BufferOptions,
    push: (items: readonly PushItem[]) => Promise<unknown>,
  ): Buffer;
}
