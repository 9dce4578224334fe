/**
 * SVG by hand: a document that is legible on light and on dark pages, and the few shapes that charts are made of.
 * A panel is a part of a chart with its own size; panels are put side by side or below each other.
 */
export interface Panel {
  readonly width: number;
  readonly height: number;
  readonly body: string;
}

/** Colours of series, in their order: they differ in brightness, too. */
export type Series = 0 | 1 | 2;

const STYLE = `
  text { font: 12px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #24292f; }
  .title { font-weight: 600; font-size: 13px; }
  .faint { fill: #57606a; }
  .grid { stroke: #d0d7de; stroke-width: 1; }
  .whisker { stroke: #24292f; stroke-width: 1.5; }
  .s0 { fill: #0550ae; } .s1 { fill: #bf8700; } .s2 { fill: #57a773; }
  .l0 { stroke: #0550ae; } .l1 { stroke: #bf8700; } .l2 { stroke: #57a773; }
  .line { fill: none; stroke-width: 2; }
  .weak { fill-opacity: 0.45; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; }
    .faint { fill: #9da7b1; }
    .grid { stroke: #3d444d; }
    .whisker { stroke: #e6edf3; }
    .s0 { fill: #58a6ff; } .s1 { fill: #e3b341; } .s2 { fill: #7ee2a8; }
    .l0 { stroke: #58a6ff; } .l1 { stroke: #e3b341; } .l2 { stroke: #7ee2a8; }
  }`;

export function document(title: string, panel: Panel): string {
  const { width, height, body } = panel;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    `<title>${escapeXml(title)}</title>`,
    `<style>${STYLE}\n</style>`,
    body,
    "</svg>\n",
  ].join("\n");
}

export const escapeXml = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");

export function text(
  x: number,
  y: number,
  content: string,
  options: { anchor?: "start" | "middle" | "end"; style?: "title" | "faint" } = {},
): string {
  const style = options.style ? ` class="${options.style}"` : "";
  return `<text x="${at(x)}" y="${at(y)}" text-anchor="${options.anchor ?? "start"}"${style}>${escapeXml(content)}</text>`;
}

export const rectangle = (x: number, y: number, width: number, height: number, style: string): string =>
  `<rect x="${at(x)}" y="${at(y)}" width="${at(Math.max(0, width))}" height="${at(height)}" class="${style}"/>`;

export const line = (x1: number, y1: number, x2: number, y2: number, style: string): string =>
  `<line x1="${at(x1)}" y1="${at(y1)}" x2="${at(x2)}" y2="${at(y2)}" class="${style}"/>`;

export const polyline = (points: readonly (readonly [number, number])[], style: string): string =>
  `<polyline points="${points.map(([x, y]) => `${at(x)},${at(y)}`).join(" ")}" class="${style}"/>`;

export const circle = (x: number, y: number, radius: number, style: string): string =>
  `<circle cx="${at(x)}" cy="${at(y)}" r="${radius}" class="${style}"/>`;

export function beside(panels: readonly Panel[], gap = 24): Panel {
  let x = 0;
  const parts = panels.map((panel) => {
    const part = `<g transform="translate(${x} 0)">\n${panel.body}\n</g>`;
    x += panel.width + gap;
    return part;
  });
  return { width: x - gap, height: Math.max(...panels.map(({ height }) => height)), body: parts.join("\n") };
}

export function below(panels: readonly Panel[], gap = 20): Panel {
  let y = 0;
  const parts = panels.map((panel) => {
    const part = `<g transform="translate(0 ${y})">\n${panel.body}\n</g>`;
    y += panel.height + gap;
    return part;
  });
  return { width: Math.max(...panels.map(({ width }) => width)), height: y - gap, body: parts.join("\n") };
}

/** A tenth of a pixel is enough, and keeps differences between two charts short. */
const at = (value: number): string => String(Number(value.toFixed(1)));
