/**
 * A delivery is what one pop brought, in the client's hands: the messages of one or more lanes under one lease,
 * which is renewed until the delivery ends.
 *
 * A lane is over when a message of it failed, was given back, or its lease is lost: the rest of the lane comes
 * again, to somebody, in order, so nobody may work on it here.
 */
import type { Core } from "./core.ts";
import { type Ack, affinityKey } from "./data-plane.ts";
import { LeaseLostError } from "./errors.ts";
import type { Held } from "./lease-keeper.ts";
import type { AckResult, AckStatus, Message } from "./message.ts";
import { Abort } from "./transport/abort.ts";

interface Lane {
  readonly open: Set<Message>;
  readonly abort: Abort;
  isOver: boolean;
}

export interface Settlement {
  readonly status: AckStatus;
  readonly error?: string | undefined;
}

const LEASE_LOST = "Invalid or expired lease";
// As long as a reason should be that people read.
const ERROR_LENGTH_MAX = 2_000;

export class Delivery<T> {
  readonly messages: readonly Message<T>[];
  readonly #core: Core;
  readonly #lanes = new Map<string, Lane>();
  readonly #acks = new Set<Promise<unknown>>();
  readonly #abort = new Abort();
  #held: Held | undefined;

  private constructor(core: Core, messages: readonly Message<T>[]) {
    this.#core = core;
    this.messages = messages;
    for (const message of messages) {
      const lane = this.#lanes.get(message.partitionId);
      if (lane) lane.open.add(message);
      else
        this.#lanes.set(message.partitionId, {
          open: new Set([message]),
          abort: new Abort(),
          isOver: false,
        });
    }
  }

  /** `renewSeconds` false: the lease runs out at its time. */
  static async of<T>(
    core: Core,
    messages: readonly Message<T>[],
    renewSeconds: number | false,
  ): Promise<Delivery<T>> {
    const delivery = new Delivery(core, messages);
    const { leaseId, queue, consumerGroup } = messages[0]!;
    if (renewSeconds !== false && leaseId !== "") {
      const lease = {
        leaseId,
        seconds: renewSeconds,
        affinityKey: affinityKey(queue, undefined, consumerGroup),
      };
      delivery.#held = await core.keeper.hold(lease, (error) => delivery.abort(error));
    }
    return delivery;
  }

  /** Aborted when any lane is lost. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  signalOf(message: Message): AbortSignal {
    return this.#lane(message).abort.signal;
  }

  /** Whether the message is still for us: not settled, and its lane not over. */
  isOpen(message: Message): boolean {
    const lane = this.#lane(message);
    return !lane.isOver && lane.open.has(message) && !this.#core.settled.has(message);
  }

  /** The user may have settled some by hand: what failed that way comes again with the rest of its lane. */
  notice(messages: readonly Message[]): void {
    for (const message of messages)
      if (endsLane(this.#core.settled.get(message))) this.#lane(message).isOver = true;
  }

  /**
   * Settles those that are open, in one call. Resolves with what the broker said of each of them; rejects with
   * LeaseLostError where the lease of some was lost before.
   */
  settle(messages: readonly Message[], { status, error }: Settlement): Promise<AckResult[]> {
    const lost = messages.map((message) => this.#lane(message).abort.reason).find(isLeaseLost);
    const open = messages.filter((message) => this.isOpen(message));
    for (const message of open) this.#lane(message).open.delete(message);
    if (endsLane(status)) for (const message of open) this.#lane(message).isOver = true;
    const text = error?.slice(0, ERROR_LENGTH_MAX);
    const work = this.#ack(open.map((message) => ({ message, status, error: text }))).then((results) => {
      if (lost) throw lost;
      return results;
    });
    this.#acks.add(work);
    const forget = (): void => void this.#acks.delete(work);
    work.then(forget, forget);
    return work;
  }

  /**
   * All lanes are lost, or nobody has time for them any more. A lane with nothing open is done: that its lease has
   * ended is how it should be.
   */
  abort(reason: unknown): void {
    const open = [...this.#lanes.values()].filter((lane) =>
      [...lane.open].some((message) => this.isOpen(message)),
    );
    if (open.length === 0) return;
    for (const lane of open) {
      lane.isOver ||= isLeaseLost(reason);
      lane.abort.abort(reason);
    }
    this.#abort.abort(reason);
  }

  /** Gives the rest back, waits for the acks, and lets the lease go. */
  async end(): Promise<void> {
    const firsts: Message[] = [];
    for (const lane of this.#lanes.values()) {
      const first = [...lane.open].find((message) => this.isOpen(message));
      if (first) firsts.push(first);
    }
    if (firsts.length > 0)
      this.settle(firsts, { status: "retry" }).catch((error) =>
        this.#core.warn("Messages were not given back; they come again when their lease runs out.", error),
      );
    await Promise.allSettled([...this.#acks]);
    this.letGo();
  }

  /** Ends the renewal of the lease and nothing else. */
  letGo(): void {
    this.#held?.release();
    this.#held = undefined;
  }

  async #ack(acks: readonly Ack[]): Promise<AckResult[]> {
    const { queue, consumerGroup } = this.messages[0]!;
    const results = await this.#core.acker.ack(
      consumerGroup,
      affinityKey(queue, undefined, consumerGroup),
      acks,
    );
    for (const [index, { success, error }] of results.entries()) {
      if (success || error !== LEASE_LOST) continue;
      const { message } = acks[index]!;
      const lane = this.#lane(message);
      const reason = new LeaseLostError(message.leaseId, error);
      lane.isOver = true;
      lane.abort.abort(reason);
      this.#abort.abort(reason);
    }
    return results;
  }

  #lane(message: Pick<Message, "partitionId">): Lane {
    return this.#lanes.get(message.partitionId)!;
  }
}

const endsLane = (status: AckStatus | undefined): boolean => status === "failed" || status === "retry";
const isLeaseLost = (reason: unknown): reason is LeaseLostError => reason instanceof LeaseLostError;
