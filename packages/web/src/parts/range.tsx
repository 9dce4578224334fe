/** How far back charts look; it is part of the address. */
import { link, place } from "../router.ts";

const RANGES = [
  ["1 h", "1h", 60],
  ["6 h", "6h", 360],
  ["24 h", "24h", 1_440],
  ["7 d", "7d", 10_080],
] as const;

const now = () => RANGES.find(([, name]) => name === place.value.query.get("range")) ?? RANGES[0];

export const rangeMinutes = (): number => now()[2];

export function RangeSwitch() {
  const { parts, query } = place.value;
  const chosen = now();
  return (
    <nav class="switch" aria-label="Time range">
      {RANGES.map((range) => (
        <a
          key={range[1]}
          href={link(parts, { ...Object.fromEntries(query), range: range[1] })}
          aria-current={range === chosen ? "true" : undefined}
        >
          {range[0]}
        </a>
      ))}
    </nav>
  );
}
