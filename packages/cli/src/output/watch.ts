/** What `--watch` says: every so many seconds, or not at all. */
import type { Call } from "../command.ts";

const SECONDS_DEFAULT = 2;

export function watchSeconds(call: Call): number | undefined {
  return call.flag("watch") ? SECONDS_DEFAULT : call.optionalInteger("watch");
}
