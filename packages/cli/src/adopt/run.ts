/** One run of an adoption: what is there, what is here, bring it over, compare. */
import {
  ConnectionLostError,
  type DatabaseSettings,
  keysProblem,
  PostgresError,
  parseKeys,
} from "@queen/broker";
import type { Call } from "../command.ts";
import { databaseAt, givenDatabase, withDatabase } from "../database.ts";
import { EXIT_CODES, type ExitCode, ServerError, UsageError } from "../exit-codes.ts";
import { Progress } from "../output/progress.ts";
import { Adoption, reportOf } from "./adoption.ts";
import { optionNotes } from "./options.ts";
import { isSame, type LaneReport, REPORT_COLUMNS } from "./report.ts";
import { Source, type SourceLane, type SourceQueue } from "./source.ts";
import { Target } from "./target.ts";

// A person reads so many lanes; programs get all of them.
const LANES_SHOWN_MAX = 100;

export async function runAdoption(call: Call): Promise<ExitCode | undefined> {
  const from = call.text("from");
  if (from === undefined) throw new UsageError("--from is missing: the URL of the other Queen's database");
  const source = await Source.open(databaseAt(from));
  let exitCode: ExitCode | undefined;
  try {
    if (call.flag("dryRun")) await preview(call, source);
    else {
      await withDatabase(call, call.text("to"), async ({ settings }) => {
        await withTarget(settings, async (target) => {
          exitCode = await bringOver(call, source, target);
        });
      });
    }
  } catch (error) {
    throw interruption(error);
  } finally {
    await source.close().catch(() => {});
  }
  return exitCode;
}

/** What a database said, or that it said nothing more. Nothing is lost: what came over is committed. */
function interruption(error: unknown): unknown {
  if (!(error instanceof PostgresError || error instanceof ConnectionLostError)) return error;
  return new ServerError(`${error.message}. What came over is kept: run the same again to go on`, {
    cause: error,
  });
}

interface Plan {
  readonly queues: readonly SourceQueue[];
  readonly lanes: ReadonlyMap<string, readonly SourceLane[]>;
}

async function planOf(call: Call, source: Source): Promise<Plan> {
  const queues = chosen(call, await source.queues());
  const lanes = new Map<string, SourceLane[]>(queues.map(({ name }) => [name, []]));
  for (const lane of await source.lanes()) lanes.get(lane.queue)?.push(lane);
  for (const queue of queues) for (const note of optionNotes(queue)) call.output.note(note);
  return { queues, lanes };
}

async function withTarget(
  settings: DatabaseSettings,
  work: (target: Target) => Promise<void>,
): Promise<void> {
  const target = await Target.open(settings);
  try {
    await work(target);
  } finally {
    await target.close();
  }
}

async function bringOver(call: Call, source: Source, target: Target): Promise<ExitCode | undefined> {
  const plan = await planOf(call, source);
  const total = [...plan.lanes.values()].flat().reduce((sum, { messages }) => sum + messages, 0);
  const from = Math.min(await countHere(target, plan), total);
  const progress = new Progress({ label: "adopt", unit: "messages", total, from });
  const adoption = new Adoption({ source, target, keys: keysOf(call), progress });
  const reports: LaneReport[] = [];
  for (const queue of plan.queues) {
    for await (const lane of adoption.queue(queue, plan.lanes.get(queue.name)!)) reports.push(lane);
  }
  progress.finish();
  await print(call, plan, reports);
  const different = reports.filter((lane) => !isSame(lane));
  if (different.length === 0) return undefined;
  call.output.note(`${different.length} lanes differ`);
  return EXIT_CODES.server;
}

/** What would come over. A target that is given is looked at, and not changed. */
async function preview(call: Call, source: Source): Promise<void> {
  const plan = await planOf(call, source);
  const reports: LaneReport[] = [];
  const look = async (target: Target | undefined): Promise<void> => {
    for (const [queue, lanes] of plan.lanes) {
      const adopted = await target?.lanes(queue, lanes, { isMade: false });
      for (const [index, lane] of lanes.entries()) {
        reports.push(reportOf(lane, adopted?.get(index), await source.cursors(lane.id)));
      }
    }
  };
  const settings = givenDatabase(call, call.text("to"));
  if (settings === undefined) await look(undefined);
  else await withTarget(settings, async (target) => look((await target.isPrepared()) ? target : undefined));
  await print(call, plan, reports);
  call.output.note("Nothing was written: this was a dry run");
}

/** Messages that an earlier run brought over. */
async function countHere(target: Target, plan: Plan): Promise<number> {
  let count = 0;
  for (const [queue, lanes] of plan.lanes) {
    const adopted = await target.lanes(queue, lanes, { isMade: false });
    for (const { messages } of adopted.values()) count += messages ?? 0;
  }
  return count;
}

function chosen(call: Call, queues: readonly SourceQueue[]): readonly SourceQueue[] {
  const names = call.texts("queue");
  if (names.length === 0) return queues;
  const missing = names.filter((name) => !queues.some((queue) => queue.name === name));
  if (missing.length > 0) throw new UsageError(`The source has no queue ${missing.join(", ")}`);
  return queues.filter(({ name }) => names.includes(name));
}

function keysOf(call: Call): Buffer[] {
  const text = call.env.QUEEN_ENCRYPTION_KEY;
  if (!text) return [];
  const problem = keysProblem(text);
  if (problem !== undefined) throw new UsageError(`QUEEN_ENCRYPTION_KEY ${problem}`);
  return parseKeys(text);
}

async function print(call: Call, { queues }: Plan, reports: readonly LaneReport[]): Promise<void> {
  const isForPeople = call.output.format === "table";
  const differentFirst = [...reports].sort((a, b) => Number(isSame(a)) - Number(isSame(b)));
  const shown = isForPeople ? differentFirst.slice(0, LANES_SHOWN_MAX) : reports;
  await call.output.list(
    shown.map((lane) => ({ ...lane, same: isSame(lane) })),
    REPORT_COLUMNS,
  );
  if (shown.length < reports.length)
    call.output.note(`${reports.length - shown.length} lanes more; -o ndjson has all`);
  const sum = (what: (lane: LaneReport) => number): string =>
    reports.reduce((total, lane) => total + what(lane), 0).toLocaleString("en-US");
  call.output.note(
    `${queues.length} queues, ${reports.length} lanes, ${sum(({ messages }) => messages.source)} messages there, ` +
      `${sum(({ messages }) => messages.here)} here; ${sum(({ deadLetters }) => deadLetters.source)} dead letters there, ` +
      `${sum(({ deadLetters }) => deadLetters.here)} here`,
  );
}
