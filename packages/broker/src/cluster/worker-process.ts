/** The worker's half of the conversation with its supervisor. */
import cluster from "node:cluster";
import type { Log } from "../telemetry.ts";
import { PLACED_EVERY_MS } from "./placement.ts";
import { type Answers, Asker, type QuestionMessage } from "./questions.ts";
import type { PrimaryLine, ToSupervisor, ToWorker, WorkerService } from "./supervisor.ts";

/**
 * Runs in a worker process, from its first line to its end. `serve` starts the service by the orders of the
 * supervisor; what it rejects with ends the process, and the supervisor replaces it.
 *
 * SIGINT and SIGHUP reach every process of a terminal and are left to the primary. SIGTERM stops the worker
 * it is sent to. A worker without its primary stops too.
 */
export function obey<Orders>(
  serve: (
    orders: Orders,
    workerIndex: number,
    line: PrimaryLine,
    ask: (question: string) => Promise<Answers>,
  ) => Promise<WorkerService>,
  log: () => Log,
): void {
  let service: Promise<WorkerService> | undefined;
  let stopMsMax = 0;
  let isStopping = false;
  let isTerminalGone = false;
  const asker = new Asker(tell);
  let heard = (_message: unknown): void => {};
  let lineEnded = (): void => {};
  const line: PrimaryLine = {
    send: (message) => tell({ queen: "service", message }),
    onMessage: (listener) => {
      heard = listener;
    },
    onEnd: (listener) => {
      lineEnded = listener;
    },
  };

  const start = async (message: ToWorker<Orders> & { queen: "start" }): Promise<void> => {
    stopMsMax = message.stopMsMax;
    service = serve(message.orders, message.workerIndex, line, (question) => asker.ask(question));
    try {
      tell({ queen: "listening", port: (await service).port });
      if (message.isPlaced) tellHowBusy();
    } catch (error) {
      log().error({ error }, "worker.failed");
      const { message, code } = error as NodeJS.ErrnoException;
      tell({ queen: "failed", message, code }, () => process.exit(1));
    }
  };
  const exit = (code: number): void => {
    // process.exit() would set the terminal back, and Node.js aborts where that terminal is gone.
    if (isTerminalGone) process.kill(process.pid, "SIGKILL");
    else process.exit(code);
  };
  const stop = async (): Promise<void> => {
    if (isStopping) return;
    isStopping = true;
    setTimeout(() => exit(1), stopMsMax).unref();
    try {
      await (await service)?.stop();
      exit(0);
    } catch (error) {
      log().error({ error }, "worker.stop-failed");
      exit(1);
    }
  };

  const answer = async ({ id, question }: QuestionMessage): Promise<void> => {
    try {
      tell({ queen: "answer", id, answer: await (await service)?.answer(question) });
    } catch (error) {
      log().warn({ error, question }, "worker.no-answer"); // whoever asked counts it as silent
    }
  };

  process.on("message", (message: ToWorker<Orders>) => {
    if (message.queen === "start") void start(message);
    // A service that does not start ends the process above.
    if (message.queen === "database-ready") {
      void service
        ?.then((started) => started.databaseReady())
        .then(
          () => tell({ queen: "ready" }),
          () => {},
        );
    }
    if (message.queen === "all-ready") {
      void service?.then(
        (started) => started.allReady(),
        () => {},
      );
    }
    if (message.queen === "accept") {
      void service?.then(
        (started) => started.accept(message.isAccepting),
        () => {},
      );
    }
    if (message.queen === "turn-away") {
      void service?.then(
        (started) => started.turnAway(message.share),
        () => {},
      );
    }
    if (message.queen === "question") void answer(message);
    if (message.queen === "answers") asker.received(message);
    if (message.queen === "service") heard(message.message);
    if (message.queen === "stop") void stop();
  });
  process.on("SIGINT", () => {});
  process.on("SIGHUP", () => {
    isTerminalGone = true;
  });
  process.on("SIGTERM", () => {
    if (!isStopping) tell({ queen: "stopping" });
    void stop();
  });
  const worker = cluster.worker!;
  worker.on("disconnect", () => {
    // Without this, Node.js ends the process here, with requests half answered.
    worker.exitedAfterDisconnect = true;
    lineEnded();
    void stop();
  });
  process.on("uncaughtException", (error) => {
    log().error({ error }, "worker.uncaught");
    process.exit(1);
  });
  tell({ queen: "hello" });
}

/** Again and again, which share of a processor this process used. */
function tellHowBusy(): void {
  let before = process.cpuUsage();
  let beforeMs = performance.now();
  setInterval(() => {
    const used = process.cpuUsage(before);
    const nowMs = performance.now();
    tell({ queen: "busy", share: (used.user + used.system) / 1000 / (nowMs - beforeMs) });
    before = process.cpuUsage();
    beforeMs = nowMs;
  }, PLACED_EVERY_MS).unref();
}

function tell(message: ToSupervisor, sent: () => void = () => {}): void {
  if (process.connected) process.send!(message, undefined, undefined, sent);
  else sent();
}
