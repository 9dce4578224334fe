/** PostgreSQL as Queen's tables see it: sizes, dead rows, vacuum, caches, what runs for long. */
import { api } from "../api.ts";
import { bytes, count } from "../format.ts";
import { useLive } from "../live.ts";
import { Problem, Section, Time } from "./pieces.tsx";
import { Table } from "./table.tsx";

interface Stats {
  readonly database: string;
  readonly deadTuples: readonly {
    readonly table: string;
    readonly deadTuples: number;
    readonly liveTuples: number;
    readonly lastVacuum: string | null;
    readonly lastAutovacuum: string | null;
  }[];
  readonly tableSizes: readonly {
    readonly table: string;
    readonly tableSizeBytes: number;
    readonly indexSizeBytes: number;
    readonly totalSizeBytes: number;
  }[];
  readonly hotUpdates: readonly { readonly table: string; readonly hotUpdatePercentage: number | null }[];
  readonly databaseCache: { readonly cacheHitRatio: number | null } | null;
  readonly activeQueries: readonly {
    readonly pid: number;
    readonly state: string | null;
    readonly query: string | null;
    readonly duration?: string | null;
  }[];
}

const TABLES_SHOWN = 8;

export function Database() {
  const { body, error } = useLive<Stats>(api(["analytics", "postgres-stats"]));
  if (!body) return <Problem error={error} />;
  const rowsOf = new Map(body.deadTuples.map((each) => [each.table, each]));
  const hotOf = new Map(body.hotUpdates.map((each) => [each.table, each.hotUpdatePercentage]));
  const ratio = body.databaseCache?.cacheHitRatio;
  return (
    <Section
      title="PostgreSQL"
      note={`Database ${body.database}${ratio === null || ratio === undefined ? "" : `, ${ratio} % of reads from its cache`}`}
    >
      <Table label="Tables of Queen in PostgreSQL">
        <thead>
          <tr>
            <th scope="col">Table</th>
            <th scope="col" class="number">
              Size
            </th>
            <th scope="col" class="number wide">
              Indexes
            </th>
            <th scope="col" class="number">
              Rows
            </th>
            <th scope="col" class="number">
              Dead rows
            </th>
            <th scope="col" class="number wide">
              Updates in place
            </th>
            <th scope="col" class="number">
              Last vacuum
            </th>
          </tr>
        </thead>
        <tbody>
          {body.tableSizes.slice(0, TABLES_SHOWN).map(({ table, tableSizeBytes, indexSizeBytes }) => {
            const rows = rowsOf.get(table);
            const hot = hotOf.get(table);
            return (
              <tr key={table}>
                <td>{table}</td>
                <td class="number">{bytes(tableSizeBytes)}</td>
                <td class="number wide">{bytes(indexSizeBytes)}</td>
                <td class="number">{count(rows?.liveTuples ?? 0)}</td>
                <td class="number">{count(rows?.deadTuples ?? 0)}</td>
                <td class="number wide">{hot === null || hot === undefined ? "–" : `${hot} %`}</td>
                <td class="number">
                  <Time at={rows?.lastAutovacuum ?? rows?.lastVacuum ?? null} />
                </td>
              </tr>
            );
          })}
        </tbody>
      </Table>
      {body.activeQueries.length > 0 && (
        <Table label="Statements that run">
          <thead>
            <tr>
              <th scope="col">Process</th>
              <th scope="col">State</th>
              <th scope="col">Statement</th>
            </tr>
          </thead>
          <tbody>
            {body.activeQueries.map(({ pid, state, query }) => (
              <tr key={pid}>
                <td class="number">{pid}</td>
                <td>{state}</td>
                <td class="wrap mono">{query}</td>
              </tr>
            ))}
          </tbody>
        </Table>
      )}
    </Section>
  );
}
