/**
 * An adoption brings everything of a source over, lane by lane:
 *
 *   queue ──▶ made, with its groups, paused ──▶ lanes: messages in their order, chunk by chunk, one commit each
 *                                                 └──▶ places of groups and dead letters ──▶ options, pause ended
 *
 * The target knows how far each lane is and notes it in the commit that brings the messages. So an adoption that was
 * cut off anywhere goes on from there, and one that is run again brings only what is new.
 */
import { PostgresError } from "@queen/broker";
import type { Progress } from "../output/progress.ts";
import { fragmentsOf } from "./fragments.ts";
import { optionsOf } from "./options.ts";
import type { GroupReport, LaneReport } from "./report.ts";
import type { Position, Source, SourceCursor, SourceLane, SourceMessage, SourceQueue } from "./source.ts";
import type { AdoptedLane, Target } from "./target.ts";

// Messages of one chunk: a few at first, then as many as make about so many bytes.
const CHUNK_MESSAGES_FIRST = 100;
const CHUNK_MESSAGES_MAX = 2_000;
const CHUNK_BYTES = 4 * 1024 * 1024;
const LANES_AT_ONCE = 1_000;
// The lane is not what it was thought to be; it is reported, and the others go on.
const CONFLICT = "QN409";

export interface AdoptionOptions {
  readonly source: Source;
  readonly target: Target;
  readonly keys: readonly Buffer[];
  readonly progress: Progress;
}

export class Adoption {
  readonly #options: AdoptionOptions;
  readonly #chunk = new ChunkSize();

  constructor(options: AdoptionOptions) {
    this.#options = options;
  }

  /** Brings one queue over; yields what became of each of its lanes. */
  async *queue(queue: SourceQueue, lanes: readonly SourceLane[]): AsyncGenerator<LaneReport> {
    const { source, target } = this.#options;
    const options = optionsOf(queue);
    const isOpened =
      (await target.isUnderWay(queue.name)) !== false || (await this.#isBehind(queue.name, lanes));
    if (isOpened) await target.beginQueue(queue, options, await source.groups(queue.name));
    for (const some of slices(lanes)) {
      const adopted = await target.lanes(queue.name, some, { isMade: isOpened });
      const reports: LaneReport[] = [];
      for (const [index, lane] of some.entries()) reports.push(await this.#lane(lane, adopted.get(index)));
      const now = await target.lanes(queue.name, some, { isMade: false });
      for (const [index, report] of reports.entries()) yield compared(report, now.get(index));
    }
    if (isOpened) await target.endQueue(queue, options);
  }

  /** Whether the source has lanes or messages that are not here. */
  async #isBehind(queue: string, lanes: readonly SourceLane[]): Promise<boolean> {
    const { source, target } = this.#options;
    for (const some of slices(lanes)) {
      const adopted = await target.lanes(queue, some, { isMade: false });
      if (some.some((_, index) => adopted.get(index)?.messages === undefined)) return true;
      const positions = some.map((_, index) => adopted.get(index)?.position);
      if (await source.hasMore(some, positions)) return true;
    }
    return false;
  }

  async #lane(lane: SourceLane, adopted: AdoptedLane | undefined): Promise<LaneReport> {
    const { source, target, progress } = this.#options;
    const cursors = await source.cursors(lane.id);
    const report = reportOf(lane, adopted, cursors);
    if (adopted?.messages === undefined || report.problem !== undefined) {
      progress.add(lane.messages);
      return { ...report, problem: report.problem ?? "the lane here was brought over from another database" };
    }
    try {
      await this.#messages(lane, adopted);
      const letters = lane.letters === 0 ? [] : await source.letters(lane.id);
      return { ...report, groups: groupsOf(cursors, await target.setPlaces(lane, cursors, letters)) };
    } catch (error) {
      if (!(error instanceof PostgresError) || error.sqlstate !== CONFLICT) throw error;
      return { ...report, problem: error.message };
    }
  }

  /** Everything behind what is here, whatever the counts say: the source may have removed some meanwhile. */
  async #messages(lane: SourceLane, adopted: AdoptedLane): Promise<void> {
    const { source, target, keys, progress } = this.#options;
    let here = adopted.messages!;
    let position: Position | undefined = adopted.position;
    if (here === 0 && lane.messages === 0) return;
    for (;;) {
      const limit = this.#chunk.messages;
      const messages = await source.messages(lane.id, position, limit);
      if (messages.length > 0) {
        here = await target.addMessages(lane, here, fragmentsOf(messages, keys));
        position = messages.at(-1)!;
        this.#chunk.learn(messages);
        progress.add(messages.length);
      }
      if (messages.length < limit) return;
    }
  }
}

function* slices(lanes: readonly SourceLane[]): Generator<readonly SourceLane[]> {
  for (let start = 0; start < lanes.length; start += LANES_AT_ONCE)
    yield lanes.slice(start, start + LANES_AT_ONCE);
}

/** The report with what the target says in the end. */
function compared(report: LaneReport, now: AdoptedLane | undefined): LaneReport {
  const { messages, deadLetters } = report;
  const after = {
    ...report,
    messages: { source: messages.source, here: now?.messages ?? 0 },
    deadLetters: { source: deadLetters.source, here: now?.letters ?? 0 },
  };
  if (report.problem !== undefined) return after;
  if (after.messages.here > messages.source) {
    return { ...after, problem: "the source has removed messages that came over before" };
  }
  if (after.messages.here < messages.source) {
    return {
      ...after,
      problem:
        "the source has messages that were stored late, before where an earlier run ended: delete the queue here and run it again",
    };
  }
  return after;
}

const groupsOf = (cursors: readonly SourceCursor[], here: ReadonlyMap<string, number>): GroupReport[] =>
  cursors.map(({ group, after }) => ({ group, source: after, here: here.get(group) ?? null }));

/** What is there and here, before anything is done; undefined: there is no such lane here. */
export function reportOf(
  lane: SourceLane,
  adopted: AdoptedLane | undefined,
  cursors: readonly SourceCursor[],
): LaneReport {
  return {
    queue: lane.queue,
    partition: lane.name,
    messages: { source: lane.messages, here: adopted?.messages ?? 0 },
    deadLetters: { source: lane.letters, here: adopted?.letters ?? 0 },
    groups: groupsOf(cursors, new Map()),
    ...problemOf(adopted),
  };
}

function problemOf(adopted: AdoptedLane | undefined): { problem?: string } {
  if (adopted === undefined || adopted.messages !== undefined) return {};
  const { nextOffset } = adopted;
  // A lane that is empty here is taken when it is brought over.
  if (nextOffset === 0) return {};
  return {
    problem: `the lane has ${nextOffset} messages of its own here, so that those of the source would lose their places`,
  };
}

class ChunkSize {
  messages = CHUNK_MESSAGES_FIRST;

  learn(chunk: readonly SourceMessage[]): void {
    const bytes = chunk.reduce((sum, { payload }) => sum + payload.length + 1, 0);
    const wanted = Math.floor(CHUNK_BYTES / (bytes / chunk.length));
    this.messages = Math.max(1, Math.min(CHUNK_MESSAGES_MAX, wanted, this.messages * 4));
  }
}
