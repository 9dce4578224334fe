/** Runs the generator as a process of its own. */
import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Job, Report } from "../generator.ts";
import type { Phase } from "../load.ts";
import type { Figures } from "../measure.ts";
import { adopt, stopChild } from "./children.ts";

/** Runs the job and returns its figures. The process is killed when the signal aborts. */
export async function runGenerator(
  job: Job,
  onPhase: (phase: Phase) => void,
  signal: AbortSignal,
): Promise<Figures> {
  const child = adopt(
    fork(fileURLToPath(new URL("../generator.js", import.meta.url)), {
      stdio: "inherit",
      // Bodies and answers die young; with V8's default they are copied first, and the generator is the limit.
      execArgv: ["--max-semi-space-size=64"],
    }),
  );
  try {
    return await new Promise<Figures>((resolve, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      child.once("error", reject);
      child.once("exit", (code, by) => reject(new Error(`the generator ended early (${by ?? code})`)));
      child.on("message", (report: Report) => {
        if (report.kind === "phase") onPhase(report.phase);
        else if (report.kind === "figures") resolve(report.figures);
        else reject(new Error(report.message));
      });
      child.send(job);
    });
  } finally {
    if (child.connected) child.disconnect();
    await stopChild(child);
  }
}
