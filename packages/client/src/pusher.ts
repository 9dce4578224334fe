/**
 * The pusher gathers pushes. For each queue and broker two calls are under way at a time, and what comes meanwhile goes
 * together in the next: many who push one message each share their requests, and one alone waits for nothing. A lane is
 * in one call at a time, so its messages keep the order in which they were pushed, awaited or not. Lanes that belong to
 * different brokers do not share a call.
 */
import { affinityKey, type DataPlane, type PushItem, type WirePushResult } from "./data-plane.ts";
import { ServerError } from "./errors.ts";
import type { PushResult } from "./message.ts";
import { pushJson } from "./push-json.ts";
import { soon } from "./soon.ts";

type Headers = Readonly<Record<string, string>> | undefined;

interface Waiting {
  /** Each as JSON. */
  readonly items: readonly string[];
  readonly characters: number;
  readonly partitions: ReadonlySet<string>;
  readonly key: string;
  /** The broker that it goes to first. */
  readonly home: string;
  readonly headers: Headers;
  readonly resolve: (results: PushResult[]) => void;
  readonly reject: (error: unknown) => void;
}

interface Line {
  waiting: Waiting[];
  /** The partitions of the calls under way. */
  readonly partitions: Set<string>;
  /** How many calls are under way, by the broker that they went to. */
  readonly calls: Map<string, number>;
  isDue: boolean;
}

const CALLS_MAX = 2;
// Where it is so many for each, the lanes that wait are shared by the calls that are free: one is worked on while another
// is on its way.
const LANES_WORTH_A_CALL = 16;
// What is gathered stays small enough for a quick answer; a single push of any size goes by itself.
const GATHERED_ITEMS_MAX = 1_000;
const GATHERED_CHARACTERS_MAX = 256 * 1024;
// Behind so many that stay, nobody is looked at: a queue of any length costs the same.
const PASSED_MAX = 1_000;
// Invalid, or too large.
const OF_A_MESSAGE = new Set([400, 413]);

export class Pusher {
  readonly #data: DataPlane;
  readonly #lines = new Map<string, Line>();
  #idle: (() => void)[] = [];

  constructor(data: DataPlane) {
    this.#data = data;
  }

  /** The items are of one queue, and there is at least one. */
  async push(items: readonly PushItem[], headers: Headers): Promise<PushResult[]> {
    const wired: string[] = [];
    const partitions = new Set<string>();
    let characters = 0;
    for (const item of items) {
      const json = pushJson(item);
      characters += json.length;
      wired.push(json);
      partitions.add(item.partition);
    }
    const { queue, partition } = items[0]!;
    const key = affinityKey(queue, partitions.size === 1 ? partition : undefined);
    const home = this.#data.home(key);
    const line = this.#lines.get(queue) ?? newLine();
    this.#lines.set(queue, line);
    return new Promise((resolve, reject) => {
      line.waiting.push({ items: wired, characters, partitions, key, home, headers, resolve, reject });
      this.#sendSoon(queue, line);
    });
  }

  /** Resolves when nothing is under way. */
  async drained(): Promise<void> {
    if (this.#lines.size > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  #sendSoon(queue: string, line: Line): void {
    if (line.isDue) return;
    line.isDue = true;
    soon(() => {
      line.isDue = false;
      this.#send(queue, line);
    });
  }

  #send(queue: string, line: Line): void {
    for (let pushes = next(line); pushes.length > 0; pushes = next(line)) {
      const { home } = pushes[0]!;
      const sent = pushes;
      line.calls.set(home, (line.calls.get(home) ?? 0) + 1);
      void this.#call(sent).then(() => {
        line.calls.set(home, line.calls.get(home)! - 1);
        for (const { partitions } of sent)
          for (const partition of partitions) line.partitions.delete(partition);
        this.#sendSoon(queue, line);
      });
    }
    if (line.waiting.length > 0 || line.partitions.size > 0) return;
    this.#lines.delete(queue);
    if (this.#lines.size === 0) for (const resolve of this.#idle.splice(0)) resolve();
  }

  async #call(pushes: readonly Waiting[]): Promise<void> {
    try {
      const items = pushes.flatMap((push) => push.items);
      const results = await this.#data.push(items, pushes[0]!.key, {
        headers: pushes.length === 1 ? pushes[0]!.headers : undefined,
      });
      let from = 0;
      for (const push of pushes) {
        push.resolve(results.slice(from, from + push.items.length).map(pushResult));
        from += push.items.length;
      }
    } catch (error) {
      // One bad message does not take the others along: each is pushed by itself, in order.
      if (pushes.length > 1 && error instanceof ServerError && OF_A_MESSAGE.has(error.status))
        for (const push of pushes) await this.#call([push]);
      else for (const push of pushes) push.reject(error);
    }
  }
}

const pushResult = (result: WirePushResult, index: number): PushResult => ({
  index,
  status: result.status,
  transactionId: result.transaction_id,
  messageId: result.message_id,
  partitionId: result.partition_id,
});

const newLine = (): Line => ({ waiting: [], partitions: new Set(), calls: new Map(), isDue: false });

/** How many of the lanes that wait for a broker its next call takes. */
function shareOf({ waiting, partitions }: Line, home: string, callsFree: number): number {
  if (callsFree === 1) return Infinity;
  const lanes = new Set<string>();
  for (const push of waiting)
    if (push.home === home)
      for (const partition of push.partitions) if (!partitions.has(partition)) lanes.add(partition);
  const share = Math.ceil(lanes.size / callsFree);
  return share < LANES_WORTH_A_CALL ? Infinity : share;
}

/**
 * What the next call takes along: some lanes, and of these all that wait. A push stays behind an earlier one of its lanes
 * that is under way or stays.
 */
function next(line: Line): Waiting[] {
  const taken: Waiting[] = [];
  const stay: Waiting[] = [];
  const lanes = new Set<string>();
  const passed = new Set(line.partitions);
  let items = 0;
  let characters = 0;
  let share = Infinity;
  for (const push of line.waiting) {
    const isFull =
      items + push.items.length > GATHERED_ITEMS_MAX ||
      characters + push.characters > GATHERED_CHARACTERS_MAX;
    if ((isFull && taken.length > 0) || stay.length === PASSED_MAX) break;
    const callsFree = CALLS_MAX - (line.calls.get(push.home) ?? 0);
    const hasRoom = taken[0] ? taken[0].home === push.home : callsFree > 0;
    const mayGo = (partition: string): boolean =>
      !passed.has(partition) && (lanes.size < share || lanes.has(partition));
    if (hasRoom && every(push.partitions, mayGo)) {
      if (!taken[0]) share = shareOf(line, push.home, callsFree);
      taken.push(push);
      items += push.items.length;
      characters += push.characters;
      for (const partition of push.partitions) lanes.add(partition);
    } else {
      stay.push(push);
      for (const partition of push.partitions) passed.add(partition);
    }
  }
  if (taken.length === 0) return taken;
  line.waiting = [...stay, ...line.waiting.slice(taken.length + stay.length)];
  for (const partition of lanes) line.partitions.add(partition);
  return taken;
}

function every<T>(values: Iterable<T>, test: (value: T) => boolean): boolean {
  for (const value of values) if (!test(value)) return false;
  return true;
}
