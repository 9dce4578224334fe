/**
 * Compatibility of the schema with brokers of earlier releases: what those use is still there. A release's
 * description (packages/schema/snapshot.txt as it was) says what they can use: columns, and functions with what they
 * take and return.
 */

/** What the earlier description has and the present one lacks. */
export function takenAway(earlier: string, present: string): string[] {
  const kept = new Set(usable(present));
  return usable(earlier).filter((line) => !kept.has(line));
}

/** Of a column its type counts, of a function its arguments and its result. */
function usable(description: string): string[] {
  return [
    ...section(description, "Columns, in their order").map(
      (line) => /^\S+ .+?(?= not null| generated always| default | storage |$)/.exec(line)![0],
    ),
    ...section(description, "Functions").map(
      (line) => /^.*?(?=, (?:sql|plpgsql|internal|c), (?:immutable|stable|volatile))/.exec(line)![0],
    ),
  ];
}

function section(description: string, title: string): string[] {
  const [, rest = ""] = description.split(`# ${title}\n\n`);
  return rest
    .split("\n# ")[0]!
    .split("\n")
    .filter((line) => line !== "");
}
