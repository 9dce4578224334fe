/**
 * The fault programme: runs fault tests one after the other, each on processes of its own, and prints a line
 * for each. It ends with 1 if anything did not hold.
 */
import { FaultRun } from "./fault-run.ts";
import { type FaultTest, runTest } from "./fault-test.ts";
import { MUTANTS } from "./mutants.ts";
import { type Options, readOptions, USAGE } from "./options.ts";
import { describeResult, isOk, Progress, type Result, recorder } from "./report.ts";
import { writeTable } from "./results-table.ts";
import { TESTS } from "./tests/index.ts";
import { PATRONI_TESTS } from "./tests/patroni.ts";
import { PGBOUNCER_TESTS } from "./tests/pgbouncer.ts";

const REDRAW_MS = 250;
const GROUPS: Readonly<Record<string, readonly FaultTest[]>> = {
  mutants: MUTANTS,
  patroni: PATRONI_TESTS,
  pgbouncer: PGBOUNCER_TESTS,
};
const ALL = [...TESTS, ...PATRONI_TESTS, ...PGBOUNCER_TESTS, ...MUTANTS];

function selected(ids: readonly string[]): readonly FaultTest[] {
  if (ids.length === 0) return TESTS;
  return ids.flatMap((id) => {
    const group = GROUPS[id];
    if (group) return group;
    const test = ALL.find((each) => each.id.toLowerCase() === id.toLowerCase());
    if (test) return [test];
    throw new Error(`there is no test ${id}: see --list`);
  });
}

async function runAll(
  tests: readonly FaultTest[],
  options: Options,
  progress: Progress,
  interruption: AbortSignal,
): Promise<boolean> {
  const record = recorder();
  const aborted = new Promise<void>((_, reject) => {
    interruption.addEventListener("abort", () => reject(new Error("interrupted")));
  });
  aborted.catch(() => undefined); // between two tests nobody waits for it
  let isAllOk = true;
  for (let round = 0; round < options.rounds; round++) {
    for (const { id, title, run: body } of tests) {
      const seed = options.seed + round;
      progress.begin(`${id} seed ${seed}`);
      let phase = "starting";
      const run: FaultRun = new FaultRun({
        id,
        seed,
        seconds: options.seconds,
        tell: (text) => {
          phase = text;
          progress.enter(phase, run.progress);
        },
      });
      const redrawing = setInterval(() => progress.enter(phase, run.progress), REDRAW_MS);
      const startedMs = performance.now();
      await runTest({ id, title, run: (own) => Promise.race([body(own), aborted]) }, run);
      clearInterval(redrawing);
      const result: Result = {
        id,
        title,
        seed,
        seconds: options.seconds,
        tookMs: Math.round(performance.now() - startedMs),
        outcome: run.outcome,
      };
      progress.say(describeResult(result));
      if (interruption.aborted) return false;
      record(result);
      isAllOk &&= isOk(result);
    }
  }
  return isAllOk;
}

/** The exit code. */
async function main(args: readonly string[]): Promise<number> {
  let options: Options;
  let tests: readonly FaultTest[];
  try {
    options = readOptions(args);
    tests = selected(options.ids);
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${USAGE}`);
    return 2;
  }
  if (options.isHelp || options.isList) {
    console.log(options.isHelp ? USAGE : ALL.map(({ id, title }) => `${id.padEnd(22)} ${title}`).join("\n"));
    return 0;
  }
  if (options.isTable) {
    console.log(writeTable());
    return 0;
  }
  const interruption = new AbortController();
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(name, () => interruption.abort());
  console.log(`seed ${options.seed}, ${options.seconds} s per test, ${tests.length * options.rounds} runs`);
  const isAllOk = await runAll(tests, options, new Progress(process.stdout), interruption.signal);
  if (interruption.signal.aborted) return 130;
  console.log(isAllOk ? "everything held" : "something did not hold: repeat a line with its id and --seed");
  return isAllOk ? 0 : 1;
}

process.exit(await main(process.argv.slice(2)));
