/**
 * A load: producers and consumers of one queue that go on through every fault, as clients do that were told
 * to try again, and write down what they see for the checker.
 *
 * Producers give every message a transactionId, so that a push in doubt can be repeated. A consumer acks what
 * it got; with `chaos` it also acks in parts and in any order, gives messages back, fails some and lets
 * leases run out.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { parseMessageId } from "@queen/protocol";
import { check } from "../checker/check.ts";
import { readFinalState } from "../checker/final-state.ts";
import { type Delivery, type HistoryEvent, nowMs, type Place } from "../checker/history.ts";
import type { Violation } from "../checker/rules.ts";
import { asRanges, oneByOne } from "./acks.ts";
import type { TestDatabase } from "./database.ts";
import { type HttpAnswer, HttpClient, type PoppedMessage } from "./http.ts";
import { until } from "./moments.ts";

export interface LoadOptions {
  readonly database: Pick<TestDatabase, "query">;
  /** The brokers, as of now: a client whose broker fails it turns to the next. */
  readonly urls: () => readonly string[];
  readonly queue: string;
  readonly partitions: number;
  readonly groups: readonly string[];
  readonly producers: number;
  readonly itemsPerPush: number;
  readonly consumersPerGroup: number;
  readonly leaseSeconds: number;
  readonly chaos?: boolean;
  /** A connection per push, so that a producer meets every worker. */
  readonly freshConnections?: boolean;
  /** Decides about everything that is random here. */
  readonly seed: number;
}

/** A client that turns to the next broker when its own fails. */
interface MovingClient {
  current: HttpClient;
  next(): void;
  reconnect(): void;
}

const PAUSE_MS = 20;
const PROGRESS_MS_MAX = 60_000;
const DRAIN_MS_MAX = 60_000;

/** Numbers from 0 to below 1 that follow from a seed. */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export class Load {
  readonly history: HistoryEvent[] = [];
  /** Answers that no fault excuses: 4xx and 500. */
  readonly surprises: string[] = [];
  readonly #options: LoadOptions;
  readonly #work: Promise<void>[] = [];
  readonly #pushing: Promise<void>[] = [];
  readonly #clients: HttpClient[] = [];
  #isEnough = false;
  #isOver = false;
  #stored = 0;
  #acked = 0;
  #acks = 0;

  constructor(options: LoadOptions) {
    this.#options = options;
  }

  /** Messages answered so far, and acks answered so far. */
  get stored(): number {
    return this.#stored;
  }

  get acked(): number {
    return this.#acked;
  }

  /** Resolves when so many more messages were pushed and acked: the system works, now. */
  async progress(messages: number): Promise<void> {
    const [stored, acked] = [this.#stored + messages, this.#acked + messages];
    await until(
      `${messages} more messages were pushed and acked`,
      () => this.#stored >= stored && this.#acked >= acked,
      PROGRESS_MS_MAX,
    );
  }

  async start(): Promise<void> {
    const { groups, producers, consumersPerGroup, queue, leaseSeconds, urls, chaos } = this.#options;
    const client = new HttpClient(urls()[0]!);
    // Leases run out under faults, and that must not make dead letters of messages.
    await client.configure(queue, { leaseTime: leaseSeconds, retryLimit: 1_000, retryDelay: chaos ? 20 : 0 });
    client.close();
    let index = 0;
    for (const group of groups) {
      for (let consumer = 0; consumer < consumersPerGroup; consumer++) {
        this.#work.push(this.#consume(group, index++));
      }
    }
    for (let producer = 0; producer < producers; producer++) this.#pushing.push(this.#produce(producer));
  }

  /** Ends the pushes and resolves, when every group has finished every message, with what the checker says. */
  async finish(): Promise<Violation[]> {
    const { database, queue, groups, partitions } = this.#options;
    this.#isEnough = true;
    try {
      await Promise.all(this.#pushing);
      await until("nothing waits on a broker's disk", () => this.#isSpoolEmpty(), DRAIN_MS_MAX);
      await until(
        "every group has finished every message",
        async () => {
          const [row] = await database.query(
            `select count(*)::int4 as done from queen.partition_consumers c
               join queen.partitions p on p.id = c.partition_id
               join queen.queues q on q.id = p.queue_id
              where q.name = $1 and p.name like 'p%' and c.committed = p.next_offset`,
            [queue],
          );
          return row!.done >= groups.length * partitions;
        },
        DRAIN_MS_MAX,
      );
    } finally {
      this.#isOver = true;
      await Promise.allSettled([...this.#work, ...this.#pushing]);
      for (const client of this.#clients) client.close();
    }
    const readers = groups.map((group) => ({ queue, group }));
    const state = await readFinalState((text, values) => database.query(text, values), readers);
    return [...check(this.history, state).violations];
  }

  async #isSpoolEmpty(): Promise<boolean> {
    const waiting = this.#options.urls().map(async (url) => {
      const client = new HttpClient(url);
      const { json } = await client.request("GET", "/api/v1/system/spool").finally(() => client.close());
      return json.pending as number;
    });
    return (await Promise.all(waiting)).every((pending) => pending === 0);
  }

  #client(index: number): MovingClient {
    const { urls } = this.#options;
    let at = index;
    const connect = (): HttpClient => {
      const client = new HttpClient(urls()[at % urls().length]!);
      this.#clients.push(client);
      return client;
    };
    const client = {
      current: connect(),
      next: () => {
        at++;
        client.reconnect();
      },
      reconnect: () => {
        client.current.close();
        client.current = connect();
      },
    };
    return client;
  }

  /** Sends until there is an answer that is not «try again»; undefined: the load is over. */
  async #send(
    client: MovingClient,
    method: string,
    path: string,
    body: unknown,
    sending: () => void,
  ): Promise<HttpAnswer | undefined> {
    while (!this.#isOver) {
      sending();
      try {
        const answer = await client.current.request(method, path, body);
        if (answer.status !== 503) {
          if (answer.status >= 400) this.surprises.push(`${method} ${path}: ${answer.status} ${answer.text}`);
          return answer;
        }
      } catch {
        client.next(); // the connection or its broker is gone
      }
      await sleep(PAUSE_MS);
    }
    return undefined;
  }

  async #produce(producer: number): Promise<void> {
    const { queue, partitions, itemsPerPush, seed, freshConnections } = this.#options;
    const random = randomFrom(seed + producer);
    const client = this.#client(producer);
    for (let push = 0; !this.#isEnough; push++) {
      const items = Array.from(
        { length: itemsPerPush },
        (_, item): Place => ({
          queue,
          partition: `p${Math.floor(random() * partitions)}`,
          value: `${producer}:${push * itemsPerPush + item}`,
        }),
      );
      // Every lane is there from the first push on, so that a drained lane can be told from a missing one.
      if (push === 0 && producer === 0) {
        items.forEach((item, index) => {
          items[index] = { ...item, partition: `p${index % partitions}` };
        });
      }
      const body = {
        items: items.map(({ partition, value }) => ({
          queue,
          partition,
          transactionId: value,
          payload: value,
        })),
      };
      if (freshConnections) client.reconnect();
      const answer = await this.#send(client, "POST", "/api/v1/push", body, () => {
        this.history.push({ type: "push-sent", atMs: nowMs(), broker: "any", keyed: true, items });
      });
      if (!answer) return;
      const outcome = answer.status === 201 ? "stored" : "refused";
      this.history.push({ type: "push-answered", atMs: nowMs(), broker: "any", items, outcome });
      if (outcome === "stored") this.#stored += items.length;
    }
  }

  async #consume(group: string, index: number): Promise<void> {
    const { queue, leaseSeconds, chaos, seed } = this.#options;
    const random = randomFrom(seed + 1_000 + index);
    const client = this.#client(index);
    while (!this.#isOver) {
      const query = new URLSearchParams({
        consumerGroup: group,
        wait: "true",
        timeout: "500",
        batch: String(1 + Math.floor(random() * 20)),
        partitions: String(1 + Math.floor(random() * 3)),
      });
      let sentAtMs = 0;
      const path = `/api/v1/pop/queue/${queue}?${query}`;
      const answer = await this.#send(client, "GET", path, undefined, () => {
        sentAtMs = nowMs();
      });
      if (answer?.status !== 200) continue;
      const messages = answer.json.messages as PoppedMessage[];
      const lease = answer.json.leaseId as string;
      this.history.push({
        type: "popped",
        atMs: nowMs(),
        sentAtMs,
        group,
        lease,
        leaseMs: leaseSeconds * 1000,
        messages: messages.map((message) => placeOf(queue, message)),
      });
      if (chaos) await this.#ackInParts(client, group, lease, messages, random);
      else await this.#ack(client, group, lease, messages, "completed");
    }
  }

  async #ackInParts(
    client: MovingClient,
    group: string,
    lease: string,
    messages: readonly PoppedMessage[],
    random: () => number,
  ): Promise<void> {
    if (random() < 0.03) return; // the consumer died
    const left = messages.toSorted(() => random() - 0.5);
    while (left.length > 0) {
      const part = left.splice(0, 1 + Math.floor(random() * left.length));
      const draw = random();
      const status = draw < 0.85 ? "completed" : draw < 0.93 ? "failed" : "retry";
      await this.#ack(client, group, lease, part, status);
      // Its lane is free for others now; acks of the rest would come too late, and half of the time they do.
      if (status !== "completed" && random() < 0.5) return;
    }
  }

  async #ack(
    client: MovingClient,
    group: string,
    lease: string,
    messages: readonly PoppedMessage[],
    status: "completed" | "failed" | "retry",
  ): Promise<void> {
    // Every second time what is completed goes as ranges.
    const isRanges = status === "completed" && ++this.#acks % 2 === 0;
    const acks = isRanges ? asRanges(messages) : oneByOne(messages, status);
    const body = { consumerGroup: group, acknowledgments: acks.map(({ ack }) => ack) };
    const placesOf = (messages: readonly PoppedMessage[]): Delivery[] =>
      messages.map((message) => placeOf(this.#options.queue, message));
    const answer = await this.#send(client, "POST", "/api/v1/ack/batch", body, () => {
      this.history.push({
        type: "ack-sent",
        atMs: nowMs(),
        group,
        lease,
        status,
        messages: placesOf(messages),
      });
    });
    if (answer?.status !== 200) return;
    const done = (answer.json as { success: boolean }[]).flatMap((result, index) =>
      result.success ? placesOf(acks[index]!.messages) : [],
    );
    if (done.length === 0) return;
    this.#acked += done.length;
    this.history.push({ type: "acked", atMs: nowMs(), group, lease, status, messages: done });
  }
}

const placeOf = (queue: string, message: PoppedMessage): Delivery => ({
  queue,
  partition: message.partition,
  value: message.data as string,
  offset: parseMessageId(message.id)!.offset,
});
