/** The rig's end of the process that the soak's clients run in. */
import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { until } from "@queen/test/support/moments";
import { disown, own } from "../rig/processes.ts";
import type { FromLoad, ToLoad } from "./load-process.ts";
import type { Figures, Job } from "./soak-load.ts";

const PROGRAM = fileURLToPath(new URL("./load-process.js", import.meta.url));
const NO_FIGURES: Figures = {
  stored: 0,
  buffered: 0,
  delivered: 0,
  acked: 0,
  requests: {},
  redelivered: 0,
  remembered: 0,
  violations: 0,
  surprises: [],
  memoryMb: 0,
};
// A push is sent until it is answered, which may take until a spool has room.
const LAST_PUSHES_MS_MAX = 120_000;
const VERDICT_MS_MAX = 60_000;

export type SoakVerdict = Extract<FromLoad, { kind: "verdict" }>;

export class SoakClients {
  readonly #child: ChildProcess = fork(PROGRAM, { stdio: "inherit" });
  #figures = NO_FIGURES;
  #arePushesEnded = false;
  #verdict: SoakVerdict | undefined;

  constructor(job: Job) {
    const pid = this.#child.pid!;
    own(pid);
    this.#child.once("exit", () => disown(pid));
    this.#child.on("message", (message: FromLoad) => {
      if (message.kind === "figures") this.#figures = message.figures;
      else if (message.kind === "pushes-ended") this.#arePushesEnded = true;
      else this.#verdict = message;
    });
    this.#send({ kind: "job", job });
  }

  get figures(): Figures {
    if (this.#child.exitCode !== null && !this.#verdict) throw new Error("the clients' process ended");
    return this.#figures;
  }

  setRate(perSecond: number): void {
    this.#send({ kind: "rate", perSecond });
  }

  async endPushes(): Promise<void> {
    this.#send({ kind: "enough" });
    await until("the last push was answered", () => this.#arePushesEnded, LAST_PUSHES_MS_MAX);
  }

  async end(dead: readonly (readonly [string, string, number])[]): Promise<SoakVerdict> {
    this.#send({ kind: "over", dead });
    return until("the clients told their verdict", () => this.#verdict, VERDICT_MS_MAX);
  }

  kill(): void {
    this.#child.kill("SIGKILL");
  }

  #send(message: ToLoad): void {
    this.#child.send(message);
  }
}
