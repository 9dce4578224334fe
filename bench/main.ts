/**
 * The command `npm run bench`: runs a suite, prints medians with their spread, and writes one JSON line per run to
 * bench/results; or writes the page of benchmarks from those lines.
 *
 * It ends with 1 if any run failed or received anything but what was sent.
 */
import { Bench } from "./bench.ts";
import { type Options, readOptions, USAGE } from "./options.ts";
import { writePage } from "./report/page.ts";
import { Progress } from "./report/progress.ts";
import { listing, terminalTable } from "./report/table.ts";
import { Recorder, readResults } from "./results.ts";
import { growth } from "./suites/growth.ts";
import { MEMORY } from "./suites/memory.ts";
import { PEER_RUNS } from "./suites/peers.ts";
import { type Suite, type SuiteName, select } from "./suites/scenario.ts";
import { SCENARIOS } from "./suites/scenarios.ts";

function suiteOf(options: Options): Suite {
  const suites: Record<SuiteName, () => Suite> = {
    scenarios: () => SCENARIOS,
    peers: () => PEER_RUNS,
    growth: () => growth(options.sizes),
    memory: () => MEMORY,
  };
  return suites[options.suite]();
}

async function runSuite(suite: Suite, options: Options): Promise<number> {
  const interruption = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => interruption.abort(new Error(`stopped by ${signal}`)));
  }
  const progress = new Progress(process.stdout);
  const recorder = new Recorder(options, suite.scenarios.length * options.rounds);
  try {
    const isValid = await new Bench(suite, options, progress, recorder, interruption.signal).run();
    return isValid ? 0 : 1;
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    return interruption.signal.aborted ? 130 : 1;
  } finally {
    if (recorder.lines.length > 0) console.log(`\n${terminalTable(suite.name, recorder.lines)}`);
  }
}

/** The exit code. */
async function main(args: readonly string[]): Promise<number> {
  let options: Options;
  let suite: Suite;
  try {
    options = readOptions(args);
    suite = select(suiteOf(options), options.names, options.isFull);
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : error}\n\n${USAGE}`);
    return 2;
  }
  if (options.isHelp || options.isList) {
    console.log(options.isHelp ? USAGE : listing(suiteOf(options).scenarios));
    return 0;
  }
  if (options.isReport) {
    for (const file of writePage(readResults(), options.session)) console.log(file);
    return 0;
  }
  return runSuite(suite, options);
}

process.exitCode = await main(process.argv.slice(2));
