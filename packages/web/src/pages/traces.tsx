/** Traces: their names, or what was noted under one of them. */
import { api } from "../api.ts";
import { count } from "../format.ts";
import { useLive } from "../live.ts";
import { Empty, Head, Problem, Time } from "../parts/pieces.tsx";
import { Pager, Table } from "../parts/table.tsx";
import { type NamedTrace, Timeline } from "../parts/timeline.tsx";
import { change, link, place } from "../router.ts";

const PER_PAGE = 50;

export function Traces({ parts }: { parts: readonly string[] }) {
  const name = parts[1];
  return name === undefined ? <Names /> : <Named name={name} />;
}

interface NameRow {
  readonly trace_name: string;
  readonly trace_count: number;
  readonly message_count: number;
  readonly last_seen: string;
}

const offsetNow = (): number => Number(place.value.query.get("offset") ?? 0);

function Names() {
  const offset = offsetNow();
  const { body, error, isFresh } = useLive<{ trace_names: readonly NameRow[]; total: number }>(
    api(["traces", "names"], { limit: PER_PAGE, offset: offset || null }),
  );
  return (
    <>
      <Head title="Traces" />
      <Problem error={error} />
      {body && body.trace_names.length === 0 && (
        <div class="card">
          <Empty title="Nothing was traced yet">
            <p>
              Consumers note what they do with <code>POST /api/v1/traces</code>; names tie notes of several
              messages together.
            </p>
          </Empty>
        </div>
      )}
      {body && body.trace_names.length > 0 && (
        <Table label="Trace names" isBusy={!isFresh}>
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col" class="number">
                Notes
              </th>
              <th scope="col" class="number">
                Messages
              </th>
              <th scope="col" class="number">
                Last
              </th>
            </tr>
          </thead>
          <tbody>
            {body.trace_names.map((row) => (
              <tr key={row.trace_name}>
                <td>
                  <a href={link(["traces", row.trace_name])}>{row.trace_name}</a>
                </td>
                <td class="number">{count(row.trace_count)}</td>
                <td class="number">{count(row.message_count)}</td>
                <td class="number">
                  <Time at={row.last_seen} />
                </td>
              </tr>
            ))}
          </tbody>
        </Table>
      )}
      <Pager
        offset={offset}
        limit={PER_PAGE}
        total={body?.total ?? 0}
        onPage={(to) => change({ offset: to || null })}
      />
    </>
  );
}

function Named({ name }: { name: string }) {
  const offset = offsetNow();
  const { body, error } = useLive<{ traces: readonly NamedTrace[]; total: number }>(
    api(["traces", "by-name", name], { limit: PER_PAGE, offset: offset || null }),
  );
  return (
    <>
      <Head title={name} above={[["Traces", link(["traces"])]]} />
      <Problem error={error} />
      {body && <Timeline traces={body.traces} />}
      <Pager
        offset={offset}
        limit={PER_PAGE}
        total={body?.total ?? 0}
        onPage={(to) => change({ offset: to || null })}
      />
    </>
  );
}
