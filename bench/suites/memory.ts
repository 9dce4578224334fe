/** Memory and start: what a broker takes while idle, at full load, per waiting pop and per partition; how soon it serves. */
import type { Scenario, Suite } from "./scenario.ts";
import { SCENARIOS } from "./scenarios.ts";

const ONCE = "each message once, in order per partition, none missing";

export const MEMORY: Suite = {
  name: "memory",
  scenarios: [
    idle(1),
    idle(2),
    atFullLoad("S1"),
    atFullLoad("S3"),
    atFullLoad("S5"),
    {
      ...common("parked", "What does a parked pop take, with 10,000 of them on 1,000 queues?", ONCE),
      load: { kind: "parked", consumers: 10_000, queues: 1_000 },
      goal: "<= 20 KB each",
    },
    {
      ...common(
        "partitions",
        "What does a partition take that the broker remembers, with 100,000 of them?",
        ONCE,
      ),
      load: { kind: "lanes", partitions: 100_000 },
    },
    start("cold", "where PostgreSQL has no data folder yet"),
    start("warm", "with the data folder of an earlier start"),
  ],
};

function common(id: string, asks: string, correct: string): Omit<Scenario, "load"> {
  return { id, family: id, asks, correct, compares: "rate", goal: "", topology: { brokers: 1, workers: 1 } };
}

function idle(workers: number): Scenario {
  const asks = `What does a broker with ${workers === 1 ? "one worker" : `${workers} workers`} take while idle?`;
  return {
    ...common(`idle-${workers}`, asks, "nothing is sent"),
    family: "idle",
    load: { kind: "idle" },
    topology: { brokers: 1, workers },
  };
}

function atFullLoad(id: string): Scenario {
  const alone = SCENARIOS.scenarios.find((scenario) => scenario.id === id)!;
  return {
    ...common(
      `load-${id}`,
      `What does a worker take at most in ${id}, while it is prepared and read back, too?`,
      ONCE,
    ),
    family: "load",
    load: alone.load,
  };
}

function start(from: "cold" | "warm", where: string): Scenario {
  const asks = `How long from npm start to the answer to the first push, ${where}?`;
  return {
    ...common(`start-${from}`, asks, "the push is answered"),
    family: "start",
    load: { kind: "start", from },
    compares: "p50",
  };
}
