/**
 * A table on a terminal: columns as wide as their content, cut where the terminal ends. Cells are made of what
 * producers sent, so control characters never reach the terminal.
 */
export interface Column<Row> {
  readonly title: string;
  readonly value: (row: Row) => unknown;
  /** Shares the room that is left when the rest does not fit; without it the column is never cut. */
  readonly isFlexible?: boolean;
}

const GAP = "  ";
const NARROWEST = 8;
// Control characters, and the marks that turn the direction of text.
const UNPRINTABLE = /[\p{Cc}\p{Bidi_Control}]/gu;

/** A value as one line of text. */
export function cell(value: unknown): string {
  if (value === null || value === undefined) return "-";
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.replace(UNPRINTABLE, "\ufffd");
}

export function renderTable<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  width: number,
): string {
  const values = rows.map((row) => columns.map((column) => column.value(row)));
  const cells = values.map((row) => row.map(cell));
  const widths = columns.map(({ title }, index) =>
    Math.max(title.length, ...cells.map((row) => row[index]!.length)),
  );
  shrink(widths, columns, width);
  const isNumeric = columns.map(
    (_, index) => rows.length > 0 && values.every((row) => typeof row[index] === "number"),
  );
  const line = (texts: readonly string[]): string =>
    texts
      .map((text, index) => {
        const cut = text.length > widths[index]! ? `${text.slice(0, widths[index]! - 1)}…` : text;
        return isNumeric[index] ? cut.padStart(widths[index]!) : cut.padEnd(widths[index]!);
      })
      .join(GAP)
      .trimEnd();
  return [line(columns.map(({ title }) => title)), ...cells.map(line)].map((each) => `${each}\n`).join("");
}

/** Takes from the widest of the flexible columns until the line fits, or nothing is left to take. */
function shrink(widths: number[], columns: readonly Column<never>[], width: number): void {
  let excess = widths.reduce((sum, each) => sum + each, (widths.length - 1) * GAP.length) - width;
  while (excess > 0) {
    let widest = -1;
    for (const [index, { isFlexible }] of columns.entries())
      if (isFlexible && widths[index]! > NARROWEST && (widest < 0 || widths[index]! > widths[widest]!))
        widest = index;
    if (widest < 0) return;
    widths[widest]! -= 1;
    excess -= 1;
  }
}
