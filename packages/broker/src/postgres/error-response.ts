/** What PostgreSQL says is wrong, as it comes over the wire. */
import { PostgresError } from "./errors.ts";

/** An ErrorResponse is a list of fields, each a letter and a text that ends in a zero byte. */
export function readError(bytes: Buffer, start: number, end: number): PostgresError {
  const fields = new Map<string, string>();
  let at = start;
  while (at < end && bytes[at] !== 0) {
    const textEnd = bytes.indexOf(0, at + 1);
    fields.set(String.fromCharCode(bytes[at]!), bytes.toString("utf8", at + 1, textEnd));
    at = textEnd + 1;
  }
  return new PostgresError({
    sqlstate: fields.get("C") ?? "XX000",
    severity: fields.get("V") ?? fields.get("S") ?? "ERROR",
    message: fields.get("M") ?? "PostgreSQL gave an error without a message",
    detail: fields.get("D"),
    hint: fields.get("H"),
    routine: fields.get("R"),
  });
}

/**
 * Whether the server no longer knows a prepared statement, or a table changed under it so that its result
 * would have other columns. The latter has no SQLSTATE of its own and a translated message, but one routine.
 */
export function isStalePlan(error: Error | undefined): boolean {
  if (!(error instanceof PostgresError)) return false;
  if (error.sqlstate === "26000") return true;
  return error.sqlstate === "0A000" && error.routine === "RevalidateCachedQuery";
}
