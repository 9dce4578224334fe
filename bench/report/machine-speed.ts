/**
 * A machine's speed is how many times as fast it is as the one on which the C++ server and the trial were measured, by what
 * bare HTTP makes on both. So their figures can be compared with those of another machine, with caution: the disk, the
 * memory and the database have speeds of their own, and most of them differ less than this one does.
 */
import type { Summary } from "./summary.ts";

// Requests a second; 20,000 to 25,000 were seen.
const HTTP_OF_REFERENCE = 22_500;

/** Null: bare HTTP was not measured in this session. */
export function machineSpeed(summaries: readonly Summary[]): number | null {
  const http = summaries.find(({ id }) => id === "HTTP")?.rate;
  return http ? http.median / HTTP_OF_REFERENCE : null;
}
