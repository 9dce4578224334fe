/** The load's clients run in processes of their own, one per role; this is the rig's end of them. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Figures, FromClients, Job, Role, ToClients } from "../load/process.ts";
import { disown, own } from "./processes.ts";

const PROGRAM = fileURLToPath(new URL("../load/process.js", import.meta.url));

interface Member {
  readonly role: Role;
  readonly child: ChildProcess;
  readonly ended: Promise<number | null>;
  figures: Figures;
}

export class Clients {
  readonly #members: Member[] = [];

  start(job: Omit<Job, "role">): void {
    const roles: readonly Role[] =
      job.shape.pipes > 0 ? ["producers", "consumers", "pipes"] : ["producers", "consumers"];
    for (const role of roles) {
      const child = fork(PROGRAM, { stdio: "inherit" });
      own(child.pid!);
      const ended = once(child, "exit").then(([code]) => {
        disown(child.pid!);
        return code as number | null;
      });
      const member: Member = { role, child, ended, figures: { stored: 0, delivered: 0, acked: 0 } };
      child.on("message", (message: FromClients) => {
        member.figures = message.figures;
      });
      child.send({ kind: "job", job: { ...job, role } } satisfies ToClients);
      this.#members.push(member);
    }
  }

  get figures(): Figures {
    const sum = (pick: (figures: Figures) => number): number =>
      this.#members.reduce((total, member) => total + pick(member.figures), 0);
    return {
      stored: sum((figures) => figures.stored),
      delivered: sum((figures) => figures.delivered),
      acked: sum((figures) => figures.acked),
    };
  }

  /** No more pushes; resolves when the last one was answered. The others consume what is left. */
  async endPushes(): Promise<void> {
    this.#tell({ kind: "enough" });
    await ended(this.#members.filter((member) => member.role === "producers"));
  }

  async end(): Promise<void> {
    this.#tell({ kind: "over" });
    await ended(this.#members);
  }

  kill(): void {
    for (const { child } of this.#members) child.kill("SIGKILL");
  }

  #tell(message: ToClients): void {
    for (const { child } of this.#members) if (child.connected) child.send(message);
  }
}

async function ended(members: readonly Member[]): Promise<void> {
  for (const { ended: end, role } of members) {
    const code = await end;
    if (code !== 0) throw new Error(`the process of the ${role} ended with ${code}`);
  }
}
