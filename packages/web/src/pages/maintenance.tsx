/** Maintenance: stopping pushes or pops everywhere, what waits on the broker's disk, and the sweeps. */
import { useState } from "preact/hooks";
import { api, post } from "../api.ts";
import { bytes, count, duration, plural } from "../format.ts";
import { useLive } from "../live.ts";
import { ConfirmByName } from "../parts/dialog.tsx";
import { attempt } from "../parts/notices.tsx";
import { Badge, Head, Problem, Section, Time } from "../parts/pieces.tsx";
import { Table } from "../parts/table.tsx";

interface Modes {
  readonly maintenanceMode: boolean;
  readonly popMaintenanceMode: boolean;
}

export function Maintenance() {
  const { body, error } = useLive<Modes>(api(["system", "maintenance"]));
  return (
    <>
      <Head title="Maintenance" />
      <Problem error={error} />
      {body && (
        <div class="columns">
          <Mode
            title="Push maintenance"
            what="Pushes wait on the brokers' disks and are stored in their order when it is switched off."
            path={["system", "maintenance"]}
            isOn={body.maintenanceMode}
          />
          <Mode
            title="Pop maintenance"
            what="Every pop is answered at once, with nothing. Acks, extensions and transactions go on."
            path={["system", "maintenance", "pop"]}
            isOn={body.popMaintenanceMode}
          />
        </div>
      )}
      <Spool />
      <Sweeps />
    </>
  );
}

function Mode(props: {
  readonly title: string;
  readonly what: string;
  readonly path: readonly string[];
  readonly isOn: boolean;
}) {
  const { title, what, path, isOn } = props;
  const turn = () =>
    attempt(async () => {
      await post(api(path), { enabled: !isOn });
      return `${title} is ${isOn ? "off" : "on"}, on every broker within a second.`;
    });
  return (
    <section class="card step" aria-label={title}>
      <header>
        <h2>{title}</h2>
        {isOn ? <Badge tone="warn">on</Badge> : <Badge tone="good">off</Badge>}
      </header>
      <p class="soft">{what}</p>
      <div class="actions">
        <button type="button" class={isOn ? "primary" : ""} aria-pressed={isOn} onClick={() => void turn()}>
          Switch {isOn ? "off" : "on"}
        </button>
      </div>
    </section>
  );
}

interface SpoolAnswer {
  readonly enabled: boolean;
  readonly folder: string | null;
  readonly databaseAway: boolean;
  readonly healthy: boolean;
  readonly draining: boolean;
  readonly pending: number;
  readonly bytes: number;
  readonly bytesMax: number;
  readonly damaged: number;
  readonly rejectedCount: number;
  readonly rejected: readonly {
    readonly id: string;
    readonly queue: string;
    readonly partition: string;
    readonly transactionId: string;
    readonly reason: string;
  }[];
}

function Spool() {
  const { body, error } = useLive<SpoolAnswer>(api(["system", "spool"]));
  const [discarding, setDiscarding] = useState<string>();
  if (!body) return <Problem error={error} />;
  const act = (what: "retry" | "discard", ids: readonly string[]) =>
    attempt(async () => {
      await post(api(["system", "spool", what]), { ids });
      return what === "retry" ? "It is tried again." : "It is deleted.";
    });
  return (
    <Section title="On the broker's disk" note={body.enabled ? undefined : "This broker has no spool"}>
      <dl class="facts card">
        <dt>Waiting</dt>
        <dd>
          {plural(body.pending, "message")}, {bytes(body.bytes)} of {bytes(body.bytesMax)}
          {body.draining && " · being stored"}
        </dd>
        <dt>State</dt>
        <dd>
          {body.healthy ? (
            <Badge tone="good">disk is well</Badge>
          ) : (
            <Badge tone="bad">disk cannot be written</Badge>
          )}{" "}
          {body.databaseAway && <Badge tone="bad">database is away</Badge>}
        </dd>
        <dt>Folder</dt>
        <dd>
          <code>{body.folder ?? "–"}</code>
        </dd>
        <dt>Refused by the database</dt>
        <dd>{plural(body.rejectedCount, "message")}</dd>
      </dl>
      {body.rejected.length > 0 && (
        <Table label="Refused messages">
          <thead>
            <tr>
              <th scope="col">Message</th>
              <th scope="col">Reason</th>
              <th scope="col">
                <span class="unseen">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {body.rejected.map((each) => (
              <tr key={each.id}>
                <td>
                  {each.queue} / {each.partition} <code>{each.transactionId}</code>
                </td>
                <td class="wrap">{each.reason}</td>
                <td>
                  <button type="button" class="small" onClick={() => void act("retry", [each.id])}>
                    Retry
                  </button>{" "}
                  <button type="button" class="small danger" onClick={() => setDiscarding(each.id)}>
                    Discard
                  </button>
                </td>
              </tr>
            ))}
          </tbody>
        </Table>
      )}
      {discarding !== undefined && (
        <ConfirmByName
          title="Discard the message"
          name="discard"
          action="Delete the message"
          onConfirm={() => act("discard", [discarding])}
          onClose={() => setDiscarding(undefined)}
        >
          <p>The database refused it, and this is the only copy.</p>
        </ConfirmByName>
      )}
    </Section>
  );
}

interface SweepRow {
  readonly name: string;
  readonly underWay: boolean;
  readonly worker: string | null;
  readonly finishedAt: string | null;
  readonly busyMs: number;
  readonly passes: number;
  readonly done: Readonly<Record<string, number>>;
  readonly total: Readonly<Record<string, number>>;
}

const said = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .map(([name, value]) => `${count(value)} ${name.replaceAll(/([A-Z])/g, " $1").toLowerCase()}`)
    .join(", ");

function Sweeps() {
  const { body, error } = useLive<{ sweeps: readonly SweepRow[] }>(api(["system", "sweeps"]));
  if (!body) return <Problem error={error} />;
  return (
    <Section title="Sweeps" note="Retention, eviction, leases that ran out">
      <Table label="Sweeps">
        <thead>
          <tr>
            <th scope="col">Sweep</th>
            <th scope="col">Last pass</th>
            <th scope="col" class="number wide">
              Took
            </th>
            <th scope="col" class="number">
              Passes
            </th>
            <th scope="col">Did last</th>
            <th scope="col" class="wide">
              Did ever
            </th>
          </tr>
        </thead>
        <tbody>
          {body.sweeps.map((sweep) => (
            <tr key={sweep.name}>
              <td>
                {sweep.name} {sweep.underWay && <Badge tone="accent">under way</Badge>}
              </td>
              <td>
                <Time at={sweep.finishedAt} />
              </td>
              <td class="number wide">{duration(sweep.busyMs / 1000)}</td>
              <td class="number">{count(sweep.passes)}</td>
              <td>{said(sweep.done)}</td>
              <td class="wide">{said(sweep.total)}</td>
            </tr>
          ))}
        </tbody>
      </Table>
    </Section>
  );
}
