/**
 * Exact JSON: numbers that JavaScript cannot hold as they are written (12345678901234567890, 1e400, 1.10) travel through
 * the command as marked strings and are written again as they came. The mark is drawn anew for each process, so that
 * no payload can hold it.
 *
 *   text ──protect──▶ JSON.parse ──▶ value ──▶ JSON.stringify or YAML or a table ──restore──▶ text
 */
import { randomBytes } from "node:crypto";

const MARK = `number_${randomBytes(8).toString("hex")}_`;
const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g;
const MARKED = new RegExp(`"?${MARK}([-\\d.eE+]+)"?`, "g");

/** The same JSON text, with a marked string in the place of each number that would not survive. */
export function protect(text: string): string {
  return text.replace(TOKEN, (token) =>
    token.charCodeAt(0) === 0x22 || String(Number(token)) === token ? token : `"${MARK}${token}"`,
  );
}

/** The numbers again, in any text that the value was written to. */
export function restore(text: string): string {
  return text.includes(MARK) ? text.replace(MARKED, "$1") : text;
}

/** Throws a SyntaxError as JSON.parse does. */
export function parseExactly(text: string): unknown {
  JSON.parse(text); // what is wrong is said about the text as it came
  return JSON.parse(protect(text));
}
