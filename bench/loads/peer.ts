/**
 * A peer load is one of six shapes, by the peer's own client in this one process:
 *
 *   one      senders in a closed loop, a message at a time, all to one lane: to one queue, where there are no lanes
 *   lanes    the same to many lanes, each in its order
 *   batch    the same, a hundred at a time
 *   consume  a preloaded queue is read to its end and acknowledged
 *   latency  one sender at a fixed rate, one consumer that waits; from sending to receiving. Half of the warm-up is a
 *            closed loop, so that code has run in
 *   rare     the same at one a second
 *
 * What was sent is received in the end, each message once; in order where the peer promises order.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Reading } from "../accounting.ts";
import { Ledger, type Reader } from "../check.ts";
import { DrainWatch, type LoadContext } from "../load.ts";
import { distribution, type Figures, type Mark, ratePerSecond, steadyPart } from "../measure.ts";
import { MessageWriter } from "../messages.ts";
import { peerNamed } from "../peers/index.ts";
import type { Consumption, Peer, PeerClient, PeerMessage } from "../peers/peer.ts";

export type Shape = "one" | "lanes" | "batch" | "consume" | "latency" | "rare";

/** Whether it asks how long a message is on its way. */
export const isTimed = (shape: Shape): boolean => shape === "latency" || shape === "rare";

export interface PeerLoad {
  readonly kind: "peer";
  readonly peer: string;
  readonly shape: Shape;
  readonly senders: number;
  readonly batch: number;
  /** Messages to preload, for `consume`. */
  readonly messages?: number;
  /** For `latency` and `rare`. */
  readonly messagesPerSecond?: number;
}

// As many as in S1.
const LANES = 100;
const PARK_MS = 300;
const STRAGGLER_MS = 500;

export async function runPeer(load: PeerLoad, context: LoadContext): Promise<Figures> {
  const peer = peerNamed(load.peer);
  const layout = layoutOf(load.shape, peer);
  const client = await peer.connect({ ...context, lanes: layout.lanes });
  try {
    return await runShape(load, context, client, layout);
  } finally {
    await client.close();
  }
}

export interface Layout {
  readonly lanes: number;
  /** Whether the order in each lane is promised, and so checked. */
  readonly isOrdered: boolean;
}

export function layoutOf(shape: Shape, { isOrdered }: Pick<Peer, "isOrdered">): Layout {
  const lanes = shape !== "one" && (isOrdered || shape === "lanes") ? LANES : 1;
  return { lanes, isOrdered: isOrdered || lanes > 1 };
}

/** The load on a client that is connected. */
export async function runShape(
  load: PeerLoad,
  context: Pick<LoadContext, "accountant" | "timing" | "padding" | "enterPhase">,
  client: PeerClient,
  layout: Layout,
): Promise<Figures> {
  const trial = new Trial(load, context, client, layout);
  try {
    if (load.shape === "consume") return await trial.consume();
    return await (isTimed(load.shape) ? trial.latency() : trial.send());
  } finally {
    await trial.stop();
  }
}

type TrialContext = Parameters<typeof runShape>[1];

class Trial {
  readonly #load: PeerLoad;
  readonly #context: TrialContext;
  readonly #client: PeerClient;
  readonly #writer: MessageWriter;
  readonly #ledger: Ledger;
  readonly #reader: Reader;
  readonly #errors: Record<string, number> = {};
  #consumption: Consumption | undefined;
  #watch = new DrainWatch();
  #onReceived: (sentAtMs: readonly number[]) => void = () => undefined;
  #onDone: (count: number) => void = () => undefined;

  constructor(load: PeerLoad, context: TrialContext, client: PeerClient, { lanes, isOrdered }: Layout) {
    this.#load = load;
    this.#context = context;
    this.#client = client;
    this.#writer = new MessageWriter(context.padding);
    this.#ledger = new Ledger({ partitions: lanes, producers: load.senders, isOrdered });
    this.#reader = this.#ledger.reader();
  }

  /** `one`, `lanes` and `batch`. */
  async send(): Promise<Figures> {
    const { accountant, timing, enterPhase } = this.#context;
    const latencies: number[] = [];
    let isMeasuring = false;
    let isOver = false;
    let messages = 0;
    const produce = async (sender: number): Promise<void> => {
      while (!isOver) {
        const sentAtMs = performance.now();
        const sent = await this.#send(sender, this.#load.batch);
        if (!isMeasuring || sent === 0) continue;
        messages += sent;
        latencies.push(performance.now() - sentAtMs);
      }
    };
    enterPhase("warming up");
    const producing = Array.from({ length: this.#load.senders }, (_, sender) => produce(sender));
    await sleep(timing.warmupSeconds * 1000);
    const opening = await accountant.open();
    enterPhase("measuring");
    isMeasuring = true;
    await sleep(timing.seconds * 1000);
    const closing = accountant.read();
    isMeasuring = false;
    isOver = true;
    const cost = await accountant.cost(opening, closing, messages);
    await Promise.all(producing);
    enterPhase("checking");
    await this.#start("drain");
    await this.#untilAllIsReceived();
    return {
      messages,
      perSecond: ratePerSecond(messages, closing.atMs - opening.atMs),
      latencyMs: distribution(latencies),
      cost,
      ...this.#outcome(),
    };
  }

  async consume(): Promise<Figures> {
    const { accountant, enterPhase } = this.#context;
    const { senders, batch, messages = 0 } = this.#load;
    enterPhase("preloading");
    const fill = async (sender: number): Promise<void> => {
      while (this.#ledger.sentCount < messages) await this.#send(sender, batch);
    };
    await Promise.all(Array.from({ length: senders }, (_, sender) => fill(sender)));
    const total = this.#ledger.confirmedCount;
    const marks: Mark[] = [];
    let done = 0;
    let closing: Reading | undefined;
    this.#onDone = (count) => {
      done += count;
      marks.push({ atMs: performance.now(), total: done });
      if (done >= total) closing ??= accountant.read();
    };
    const opening = await accountant.open();
    enterPhase("measuring");
    await this.#start("drain");
    await this.#untilAllIsReceived();
    closing ??= accountant.read();
    const steady = steadyPart(marks, 0.1, 0.95);
    return {
      messages: done,
      perSecond: ratePerSecond(steady.to.total - steady.from.total, steady.to.atMs - steady.from.atMs),
      latencyMs: distribution([]),
      cost: await accountant.cost(opening, closing, done),
      ...this.#outcome(),
    };
  }

  /** `latency` and `rare`. */
  async latency(): Promise<Figures> {
    const { accountant, timing, enterPhase } = this.#context;
    const latencies: number[] = [];
    let isMeasuring = false;
    this.#onReceived = (sentAtMs) => {
      const nowMs = performance.now();
      if (isMeasuring) for (const t of sentAtMs) latencies.push(nowMs - t);
    };
    await this.#start("wait");
    await sleep(PARK_MS);
    const intervalMs = 1000 / (this.#load.messagesPerSecond ?? 50);
    const sendFor = async (seconds: number): Promise<void> => {
      const startedAtMs = performance.now();
      for (let dueAtMs = startedAtMs; dueAtMs < startedAtMs + seconds * 1000; dueAtMs += intervalMs) {
        await sleep(Math.max(0, dueAtMs - performance.now()));
        await this.#send(0, 1);
      }
    };
    enterPhase("warming up");
    const runInUntilMs = performance.now() + timing.warmupSeconds * 500;
    while (performance.now() < runInUntilMs) await this.#send(0, 1);
    await sendFor(timing.warmupSeconds / 2);
    const opening = await accountant.open();
    enterPhase("measuring");
    isMeasuring = true;
    await sendFor(timing.seconds);
    const closing = accountant.read();
    enterPhase("draining");
    await this.#untilAllIsReceived();
    return {
      messages: latencies.length,
      perSecond: ratePerSecond(latencies.length, closing.atMs - opening.atMs),
      latencyMs: distribution(latencies),
      cost: await accountant.cost(opening, closing, latencies.length),
      ...this.#outcome(),
    };
  }

  async stop(): Promise<void> {
    await this.#consumption?.stop();
    this.#consumption = undefined;
  }

  async #start(style: "drain" | "wait"): Promise<void> {
    this.#watch = new DrainWatch();
    this.#consumption = await this.#client.consume(style, {
      received: (messages) => {
        this.#watch.touch();
        this.#reader.receive(messages, Infinity, performance.now());
        this.#onReceived(messages.map(({ data }) => data.t));
      },
      done: (count) => this.#onDone(count),
      failed: (error) => this.#count(error),
    });
  }

  /** Then waits a moment for a duplicate to show itself, and for the last acknowledgements. */
  async #untilAllIsReceived(): Promise<void> {
    while (!this.#reader.complete && !this.#watch.isTooLong) await sleep(20);
    await sleep(STRAGGLER_MS);
    await this.stop();
  }

  /** How many of the messages were confirmed: all or, counted as an error, none. */
  async #send(sender: number, count: number): Promise<number> {
    const partition = (Math.random() * this.#ledger.partitions) | 0;
    const first = this.#ledger.sentCount;
    const sentAtMs = performance.now();
    const messages: PeerMessage[] = Array.from({ length: count }, () => ({
      partition,
      data: this.#writer.data(sender, this.#ledger.send(partition), sentAtMs),
    }));
    try {
      if (this.#load.batch === 1) await this.#client.send(sender, messages[0]!);
      else await this.#client.sendBatch(sender, messages);
    } catch (error) {
      this.#count(error);
      await sleep(20);
      return 0;
    }
    for (let number = first; number < first + count; number += 1) this.#ledger.confirm(number);
    return count;
  }

  #count(error: unknown): void {
    const text = (error instanceof Error ? error.message : String(error)).slice(0, 160);
    this.#errors[text] = (this.#errors[text] ?? 0) + 1;
  }

  #outcome(): Pick<Figures, "verdict" | "extra" | "errors"> {
    return { verdict: this.#ledger.verdict(), extra: {}, errors: this.#errors };
  }
}
