/** `queen bench`: how much this broker takes, measured with messages that are counted and checked. */
import { randomBytes } from "node:crypto";
import type { Call, Command } from "../command.ts";
import type { Api } from "../connection.ts";
import { path } from "../connection.ts";
import { ServerError } from "../exit-codes.ts";
import { Progress } from "../output/progress.ts";

interface Payload {
  readonly lane: number;
  readonly number: number;
}

interface Popped {
  readonly transactionId: string;
  readonly partitionId: string;
  readonly leaseId: string;
  readonly data: Payload;
}

interface Plan {
  readonly queue: string;
  readonly seconds: number;
  readonly lanes: number;
  readonly batch: number;
  readonly filler: string;
  readonly producers: number;
  readonly consumers: number;
}

const POP_WAIT_MS = 1_000;
// Consumers get so long for what is left when producers have stopped.
const DRAIN_SECONDS = 60;
const TICK_MS = 200;

const between = (min: number, max: number) => ({ min, max });

export const bench: Command = {
  name: "bench",
  summary: "Push, pop and ack for some seconds in a queue of its own, and say how fast it was",
  details:
    "It measures this client and this broker together, on whatever else these machines do; docs/benchmarks.md has scenarios " +
    "to compare with. Every message is counted, and so is its place in its lane. The queue is deleted at the end.",
  options: [
    { flags: "--seconds <count>", summary: "How long to push", fallback: 10, integer: between(1, 3_600) },
    { flags: "--partitions <count>", summary: "Lanes", fallback: 10, integer: between(1, 10_000) },
    { flags: "--batch <count>", summary: "Messages in a request", fallback: 100, integer: between(1, 1_000) },
    {
      flags: "--bytes <count>",
      summary: "Bytes in a payload, about",
      fallback: 120,
      integer: between(30, 1_000_000),
    },
    {
      flags: "--producers <count>",
      summary: "Requests that push at once",
      fallback: 2,
      integer: between(1, 64),
    },
    {
      flags: "--consumers <count>",
      summary: "Requests that pop at once; 0 only pushes",
      fallback: 2,
      integer: between(0, 64),
    },
  ],
  examples: [
    { line: "queen bench", meaning: "Ten seconds with the defaults" },
    {
      line: "queen bench --seconds 30 --partitions 1000 --batch 10 -o json",
      meaning: "Many lanes, small requests",
    },
  ],
  async run(call) {
    const plan: Plan = {
      queue: `bench-${randomBytes(4).toString("hex")}`,
      seconds: call.integer("seconds"),
      lanes: call.integer("partitions"),
      batch: call.integer("batch"),
      filler: "x".repeat(Math.max(0, call.integer("bytes") - 30)),
      producers: Math.min(call.integer("producers"), call.integer("partitions")),
      consumers: call.integer("consumers"),
    };
    try {
      await measure(call, plan);
    } finally {
      await call.api.request("DELETE", path`/api/v1/resources/queues/${plan.queue}`).catch((error: Error) => {
        call.output.note(`Queue ${plan.queue} could not be deleted: ${error.message}`);
      });
    }
    return undefined;
  },
};

async function measure(call: Call, plan: Plan): Promise<void> {
  const run = new Run(call.api, plan);
  const progress = new Progress({ label: "bench", unit: "seconds", total: plan.seconds, isTime: true });
  const startedMs = performance.now();
  const ticking = setInterval(() => {
    progress.to(Math.min(plan.seconds, Math.floor((performance.now() - startedMs) / 1_000)));
  }, TICK_MS);
  try {
    const consuming = Promise.all(Array.from({ length: plan.consumers }, () => run.consume()));
    consuming.catch(() => {}); // awaited below
    await Promise.all(Array.from({ length: plan.producers }, (_, index) => run.produce(index, startedMs)));
    const pushSeconds = (performance.now() - startedMs) / 1_000;
    run.producersAreDone();
    await consuming;
    const allSeconds = (performance.now() - startedMs) / 1_000;
    progress.to(plan.seconds);
    progress.finish();
    await call.output.value(run.report(pushSeconds, allSeconds));
  } finally {
    clearInterval(ticking);
  }
  run.check();
}

class Run {
  readonly #api: Api;
  readonly #plan: Plan;
  readonly #next: number[];
  readonly #received: number[];
  readonly #pushMs: number[] = [];
  #pushed = 0;
  #popped = 0;
  #repeated = 0;
  #drainUntilMs = Number.POSITIVE_INFINITY;

  constructor(api: Api, plan: Plan) {
    this.#api = api;
    this.#plan = plan;
    this.#next = new Array<number>(plan.lanes).fill(0);
    this.#received = new Array<number>(plan.lanes).fill(0);
  }

  /** A producer has lanes of its own, so that each lane has one order. */
  async produce(index: number, startedMs: number): Promise<void> {
    const { queue, lanes, producers, batch, filler, seconds } = this.#plan;
    const own = Array.from({ length: lanes }, (_, lane) => lane).filter((lane) => lane % producers === index);
    for (let turn = 0; performance.now() - startedMs < seconds * 1_000; turn++) {
      const items = Array.from({ length: batch }, (_, place) => {
        const lane = own[(turn * batch + place) % own.length]!;
        const number = this.#next[lane]!++;
        return {
          queue,
          partition: `lane-${lane}`,
          transactionId: `${lane}-${number}`,
          payload: { lane, number, filler },
        };
      });
      const sentMs = performance.now();
      await this.#api.request("POST", "/api/v1/push", { body: { items }, repeatable: true });
      this.#pushMs.push(performance.now() - sentMs);
      this.#pushed += batch;
    }
  }

  producersAreDone(): void {
    this.#drainUntilMs = performance.now() + DRAIN_SECONDS * 1_000;
  }

  async consume(): Promise<void> {
    const { queue, batch, lanes } = this.#plan;
    while (performance.now() < this.#drainUntilMs) {
      if (this.#drainUntilMs < Number.POSITIVE_INFINITY && this.#popped >= this.#pushed) return;
      const answer = await this.#api.request<{ messages: Popped[] } | null>(
        "GET",
        path`/api/v1/pop/queue/${queue}`,
        {
          query: { batch, partitions: Math.min(lanes, 10), wait: true, timeout: POP_WAIT_MS },
          repeatable: false,
        },
      );
      const messages = answer?.messages ?? [];
      if (messages.length === 0) continue;
      for (const { data } of messages) this.#count(data);
      await this.#api.request("POST", "/api/v1/ack/batch", {
        repeatable: true,
        body: {
          acknowledgments: messages.map(({ transactionId, partitionId, leaseId }) => ({
            transactionId,
            partitionId,
            leaseId,
            status: "completed",
          })),
        },
      });
    }
  }

  #count({ lane, number }: Payload): void {
    if (number < this.#received[lane]!) {
      this.#repeated += 1; // delivered again, as may happen
      return;
    }
    if (number > this.#received[lane]!)
      throw new ServerError(`Lane ${lane}: message ${number} came too early`);
    this.#received[lane] = number + 1;
    this.#popped += 1;
  }

  report(pushSeconds: number, allSeconds: number): object {
    const sorted = [...this.#pushMs].sort((a, b) => a - b);
    const at = (share: number): number => round(sorted[Math.floor(share * (sorted.length - 1))] ?? 0);
    return {
      pushed: this.#pushed,
      pushedPerSecond: Math.round(this.#pushed / pushSeconds),
      popped: this.#popped,
      poppedPerSecond: Math.round(this.#popped / allSeconds),
      deliveredAgain: this.#repeated,
      pushRequests: sorted.length,
      pushMs: { median: at(0.5), p99: at(0.99), max: at(1) },
    };
  }

  check(): void {
    if (this.#plan.consumers === 0 || this.#popped === this.#pushed) return;
    throw new ServerError(
      `${this.#pushed - this.#popped} of ${this.#pushed} messages did not come within ${DRAIN_SECONDS} s`,
    );
  }
}

const round = (milliseconds: number): number => Math.round(milliseconds * 10) / 10;
