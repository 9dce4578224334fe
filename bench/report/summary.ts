/** A summary is what the rounds of one row say together: medians with their spread, of the runs that count. */
import { type Figures, median } from "../measure.ts";
import { type ResultLine, stolenPercent } from "../results.ts";

export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

export interface Summary {
  readonly id: string;
  readonly load: ResultLine["load"];
  readonly valid: number;
  /** Runs that failed or received something else than was sent. */
  readonly wrong: number;
  readonly missing?: string;
  readonly rate: Spread | null;
  readonly p50: Spread | null;
  readonly p99: Spread | null;
  /** CPU seconds per million messages, which are microseconds per message. */
  readonly cpu: {
    readonly generator: Spread | null;
    readonly broker: Spread | null;
    readonly postgres: Spread | null;
  };
  readonly walBytes: Spread | null;
  readonly stolenPercent: Spread | null;
  readonly rssMb: Spread | null;
  readonly workerPeakRssMb: Spread | null;
  readonly extra: Readonly<Record<string, Spread>>;
  readonly note?: string;
  readonly server?: ResultLine["server"];
}

/** One summary per scenario, in the order in which they first appear. */
export function summarise(lines: readonly ResultLine[]): Summary[] {
  const ids = [...new Set(lines.map(({ scenario }) => scenario))];
  return ids.map((id) => summariseOne(lines.filter(({ scenario }) => scenario === id)));
}

function summariseOne(lines: readonly ResultLine[]): Summary {
  const { scenario, load } = lines[0]!;
  const valid = lines.flatMap(({ isValid, figures }) => (isValid && figures ? [figures] : []));
  const spread = (pick: (figures: Recorded) => number | null | undefined): Spread | null =>
    spreadOf(valid.map(pick).filter((value) => value !== null && value !== undefined));
  const names = [...new Set(valid.flatMap(({ extra }) => Object.keys(extra)))];
  const missing = lines.find((line) => line.missing !== undefined)?.missing;
  const note = valid.find((figures) => figures.note !== undefined)?.note;
  const server = lines.find((line) => line.server !== undefined)?.server;
  return {
    id: scenario,
    load,
    valid: valid.length,
    wrong: lines.filter((line) => !line.isValid && line.missing === undefined).length,
    ...(missing === undefined ? {} : { missing }),
    rate: spread(({ perSecond }) => perSecond),
    p50: spread(({ latencyMs }) => latencyMs.p50),
    p99: spread(({ latencyMs }) => latencyMs.p99),
    cpu: {
      generator: spread(({ cost }) => cost.cpuSecondsPerMillion.generator),
      broker: spread(({ cost }) => cost.cpuSecondsPerMillion.broker),
      postgres: spread(({ cost }) => cost.cpuSecondsPerMillion.postgres),
    },
    walBytes: spread(({ cost }) => cost.walBytesPerMessage),
    stolenPercent: spread(stolenPercent),
    rssMb: spread(({ cost }) => cost.brokerRssMb),
    workerPeakRssMb: spread(({ cost }) => cost.workerPeakRssMb),
    extra: Object.fromEntries(names.map((name) => [name, spread(({ extra }) => extra[name])!])),
    ...(note === undefined ? {} : { note }),
    ...(server === undefined ? {} : { server }),
  };
}

type Recorded = Omit<Figures, "perSecond"> & { readonly perSecond: number | null };

export function spreadOf(values: readonly number[]): Spread | null {
  const middle = median(values);
  return middle === undefined ? null : { median: middle, min: Math.min(...values), max: Math.max(...values) };
}
