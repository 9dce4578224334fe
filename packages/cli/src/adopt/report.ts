/** The report of an adoption: what the source has and what is here, lane by lane, compared. */
import type { Column } from "../output/table.ts";

export interface Counts {
  readonly source: number;
  readonly here: number;
}

export interface GroupReport {
  readonly group: string;
  /** Messages that it has not finished. */
  readonly source: number;
  /** Null: it has no place here yet. */
  readonly here: number | null;
}

export interface LaneReport {
  readonly queue: string;
  readonly partition: string;
  readonly messages: Counts;
  readonly deadLetters: Counts;
  readonly groups: readonly GroupReport[];
  readonly problem?: string;
}

/** Whether everything of the lane is here. */
export const isSame = ({ messages, deadLetters, groups, problem }: LaneReport): boolean =>
  problem === undefined &&
  messages.source === messages.here &&
  deadLetters.source === deadLetters.here &&
  groups.every(({ source, here }) => source === here);

const comparison = ({ source, here }: { source: number; here: number | null }): string =>
  `${source} → ${here ?? "-"}`;

export const REPORT_COLUMNS: readonly Column<LaneReport>[] = [
  { title: "QUEUE", value: ({ queue }) => queue, isFlexible: true },
  { title: "PARTITION", value: ({ partition }) => partition, isFlexible: true },
  { title: "MESSAGES", value: ({ messages }) => comparison(messages) },
  { title: "DEAD LETTERS", value: ({ deadLetters }) => comparison(deadLetters) },
  {
    title: "UNFINISHED BY GROUP",
    value: ({ groups }) => groups.map((each) => `${each.group} ${comparison(each)}`).join(", ") || null,
    isFlexible: true,
  },
  { title: "", value: (lane) => (isSame(lane) ? "same" : (lane.problem ?? "differs")), isFlexible: true },
];
