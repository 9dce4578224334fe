/**
 * A strict reader of Prometheus' text format: every family has HELP and TYPE once and before its series, every series
 * comes once and belongs to the family above it, histograms add up. What breaks that is an error.
 */
export interface Series {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface ParsedFamily {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly series: Series[];
}

const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const LINE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|$)/y;
const SUFFIXES: Readonly<Record<string, readonly string[]>> = {
  counter: [""],
  gauge: [""],
  histogram: ["_bucket", "_sum", "_count"],
};

export function parsePrometheus(text: string): Map<string, ParsedFamily> {
  if (!text.endsWith("\n")) throw new Error("the text does not end with a newline");
  const families = new Map<string, ParsedFamily>();
  const seen = new Set<string>();
  let help: { name: string; text: string } | undefined;
  let family: ParsedFamily | undefined;
  for (const line of text.slice(0, -1).split("\n")) {
    if (line === "") continue;
    const [, kind, name = "", rest = ""] = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line) ?? [];
    if (kind === "HELP") {
      if (!NAME.test(name) || rest === "" || families.has(name)) throw new Error(`a wrong HELP: ${line}`);
      help = { name, text: rest };
    } else if (kind === "TYPE") {
      if (help?.name !== name || !(rest in SUFFIXES)) throw new Error(`a wrong TYPE: ${line}`);
      family = { name, type: rest, help: help.text, series: [] };
      families.set(name, family);
    } else {
      const series = parseSeries(line);
      if (!family || !SUFFIXES[family.type]!.some((suffix) => series.name === family!.name + suffix))
        throw new Error(`this series is not of the family above it: ${line}`);
      const key = `${series.name} ${JSON.stringify(Object.entries(series.labels).sort())}`;
      if (seen.has(key)) throw new Error(`this series comes twice: ${line}`);
      seen.add(key);
      family.series.push(series);
    }
  }
  for (const each of families.values()) if (each.type === "histogram") checkHistogram(each);
  return families;
}

function parseSeries(line: string): Series {
  const [, name, labelText = "", valueText] = LINE.exec(line) ?? [];
  if (name === undefined) throw new Error(`this line is nothing known: ${line}`);
  const labels: Record<string, string> = {};
  LABEL.lastIndex = 0;
  while (LABEL.lastIndex < labelText.length) {
    const [, label, value] = LABEL.exec(labelText) ?? [];
    if (label === undefined || label in labels) throw new Error(`its labels cannot be read: ${line}`);
    labels[label] = value!.replaceAll(/\\(.)/g, (_, letter) => (letter === "n" ? "\n" : letter));
  }
  const value = Number(valueText);
  if (!Number.isFinite(value) || value < 0) throw new Error(`its value is no number from 0 on: ${line}`);
  return { name, labels, value };
}

function checkHistogram({ name, series }: ParsedFamily): void {
  const groups = new Map<string, { buckets: Series[]; count?: number; sum?: number }>();
  for (const each of series) {
    const { le, ...labels } = each.labels;
    const key = JSON.stringify(Object.entries(labels).sort());
    const group = groups.get(key) ?? { buckets: [] };
    groups.set(key, group);
    if (each.name.endsWith("_bucket")) {
      if (le === undefined) throw new Error(`a bucket of ${name} has no le`);
      group.buckets.push(each);
    } else if (each.name.endsWith("_count")) group.count = each.value;
    else group.sum = each.value;
  }
  for (const { buckets, count, sum } of groups.values()) {
    const bounds = buckets.map(({ labels }) => (labels.le === "+Inf" ? Infinity : Number(labels.le)));
    const rises = (values: number[]): boolean =>
      values.every((value, at) => at === 0 || value >= values[at - 1]!);
    if (!rises(bounds) || !rises(buckets.map(({ value }) => value)) || bounds.at(-1) !== Infinity)
      throw new Error(`the buckets of ${name} are not in order`);
    if (count !== buckets.at(-1)!.value || sum === undefined) throw new Error(`${name} does not add up`);
  }
}

/** The value of the one series of a family that has these labels. */
export function seriesValue(
  families: ReadonlyMap<string, ParsedFamily>,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number | undefined {
  const family = families.get(name) ?? families.get(name.replace(/_(count|sum|bucket)$/, ""));
  const found = family?.series.filter(
    (each) =>
      each.name === name &&
      Object.entries(labels).every(([label, value]) => each.labels[label] === value) &&
      Object.keys(each.labels).length === Object.keys(labels).length,
  );
  return found?.[0]?.value;
}

/** The names of Queen's metrics in an expression, without the suffixes of histograms. */
export function metricsIn(expression: string): string[] {
  const withoutTexts = expression.replaceAll(/"[^"]*"/g, '""');
  return [...withoutTexts.matchAll(/\bqueen_[a-z_]+\b/g)].map(([name]) => name);
}
