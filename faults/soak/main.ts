/** The soak as a command: a line a minute on the terminal, a JSON line a minute in faults/results, and a verdict. */
import { appendFileSync, mkdirSync } from "node:fs";
import { cpus } from "node:os";
import { fileURLToPath } from "node:url";
import { Progress, revision } from "../report.ts";
import { describeMinute } from "./minute.ts";
import { type Options, readOptions, USAGE } from "./options.ts";
import { SHAPE } from "./shape.ts";
import { type SoakResult, soak, type Watcher } from "./soak.ts";

const FOLDER = fileURLToPath(new URL("../../results/", import.meta.url));

function recorder(): (line: object) => void {
  mkdirSync(FOLDER, { recursive: true });
  const file = `${FOLDER}soak-${new Date().toISOString().slice(0, 19).replaceAll(":", "")}.jsonl`;
  return (line) => appendFileSync(file, `${JSON.stringify({ at: new Date().toISOString(), ...line })}\n`);
}

/** The exit code. */
async function main(args: readonly string[]): Promise<number> {
  let options: Options;
  try {
    options = readOptions(args);
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${USAGE}`);
    return 2;
  }
  if (options.isHelp) {
    console.log(USAGE);
    return 0;
  }
  const interruption = new AbortController();
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(name, () => interruption.abort());
  const progress = new Progress(process.stdout);
  progress.begin(`soak, ${options.hours} h, seed ${options.seed}`);
  const record = recorder();
  const watcher: Watcher = {
    begun(rate, most, plan) {
      const found = most === null ? "" : ` (${most.toLocaleString("en-US")}/s at most)`;
      progress.say(
        `soak: ${options.hours} h, seed ${options.seed}, ${rate.toLocaleString("en-US")} messages/s${found}, ` +
          `retention ${plan.retentionSeconds} s`,
      );
      const { commit, isDirty } = revision();
      const { hours, seed } = options;
      const machine = { node: process.version, cores: cpus().length };
      record({ kind: "start", commit, isDirty, hours, seed, rate, most, plan, shape: SHAPE, ...machine });
    },
    tell: (phase, figures) => progress.enter(phase, figures),
    say: (line) => progress.say(line),
    minute(minute) {
      progress.say(describeMinute(minute));
      record({ kind: "minute", ...minute });
    },
  };
  let result: SoakResult;
  try {
    result = await soak(options, watcher, interruption.signal);
  } catch (error) {
    if (interruption.signal.aborted) return 130;
    progress.say(`the soak failed: ${(error as Error).message}`);
    record({ kind: "verdict", verdict: "failed", problems: [(error as Error).message] });
    return 1;
  }
  const { problems, pushed, delivered, faults, redelivered } = result;
  record({ kind: "verdict", verdict: problems.length === 0 ? "ok" : "failed", ...result });
  progress.say(
    `pushed ${pushed} | delivered ${delivered} | ${faults} faults | redelivered ${redelivered} | ` +
      (problems.length === 0 ? "everything held" : `FAILED: ${problems.join("; ")}`),
  );
  return problems.length === 0 ? 0 : 1;
}

process.exit(await main(process.argv.slice(2)));
