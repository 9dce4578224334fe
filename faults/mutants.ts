/**
 * A mutant is Queen with one mechanism broken on purpose, in the database of the run. Each test here shows that
 * the checker notices; a mutant that nobody notices means that the checker, or the load, is blind there.
 */
import { procedures } from "@queen/schema";
import type { Rule } from "@queen/test/checker/rules";
import type { FaultRun } from "./fault-run.ts";
import type { FaultTest } from "./fault-test.ts";
import type { LoadShape } from "./load/shape.ts";

interface Mutant {
  readonly id: string;
  readonly title: string;
  /** The procedure, and what is put in the place of what in it. */
  readonly procedure?: string;
  readonly changes?: readonly (readonly [string, string])[];
  /** Further statements. */
  readonly also?: string;
  readonly load?: Partial<LoadShape>;
  /** What the checker must report at least one of; nothing: it must report nothing. */
  readonly noticedBy: readonly Rule[];
  readonly faults?: (run: FaultRun) => Promise<void>;
}

// Waiting for what never ends makes no sense where it is expected.
const DRAIN_MS_MAX = 40_000;
// Makes a window between two steps wide enough to be met in a short load.
const PAUSE = "perform pg_sleep(0.01);";

// Leases that run out are no failures that count, and nothing else fails.
const PATIENT = { retryLimit: 9, poisonShare: 0, nackShare: 0 };

// Consumers wait for messages, which come one by one and are handed over to them.
const IDLE = { partitions: 3, itemsPerPush: 1, groups: ["a"], consumersPerGroup: 8, pipes: 0 };

const BREAKAGES: readonly Mutant[] = [
  { id: "unchanged", title: "nothing is broken, and nothing is reported", noticedBy: [] },
  {
    id: "append-unknowing",
    title: "append does not look whether others were faster",
    procedure: "append",
    changes: [["p.next_offset = l.known and (l.sealed", "(l.sealed"]],
    also: `alter table queen.segments drop constraint segments_pkey;
           create index segments_unlocked on queen.segments (partition_id, first_offset);`,
    noticedBy: ["gap", "lost", "duplicate entry", "phantom"],
  },
  {
    id: "append-no-dedup",
    title: "append does not compare transactionIds with what others added",
    procedure: "append",
    changes: [["group by same.lane)", "group by same.lane having false)"]],
    load: { keyed: true, hedgedShare: 0.5 },
    noticedBy: ["duplicate entry"],
  },
  {
    id: "append-gap",
    title: "append leaves a gap now and then",
    procedure: "append",
    changes: [
      [
        "set next_offset = l.known + l.count,",
        "set next_offset = l.known + l.count + (random() < 0.05)::int4,",
      ],
    ],
    noticedBy: ["gap"],
  },
  {
    id: "hand-over-unleased",
    title: "hand_over leases nothing",
    procedure: "hand_over",
    changes: [
      ["case when p_auto_ack then null else p_token end", "null"],
      [
        "case when p_auto_ack then null else v_now + p_lease_s * interval '1 second' end",
        "null::timestamptz",
      ],
      [
        "lease_until = case when p_auto_ack then null else p_known + least(p_budget, p_messages) end",
        "lease_until = null",
      ],
    ],
    load: IDLE,
    noticedBy: ["overlap"],
  },
  {
    id: "take-unlocked",
    title: "take takes no lock of the cursor",
    procedure: "take",
    changes: [
      ["       for no key update of c skip locked\n", ""],
      ["  v_now := clock_timestamp();\n\n  update", `  v_now := clock_timestamp();\n  ${PAUSE}\n\n  update`],
    ],
    noticedBy: ["overlap"],
  },
  {
    id: "take-ignores-lease",
    title: "take does not look whether the lane is leased",
    procedure: "take",
    changes: [["(c.lease_token is null or c.lease_expires_at <= v_now)\n       and p", "p"]],
    noticedBy: ["overlap"],
  },
  {
    id: "take-skips",
    title: "take leaves the first message out now and then",
    procedure: "take",
    changes: [
      [
        "    v_lo := r.committed;\n",
        "    v_lo := r.committed + (random() < 0.05 and r.next_offset > r.committed + 1)::int4;\n",
      ],
    ],
    noticedBy: ["skip", "delivery order", "lost"],
  },
  {
    id: "settle-ignores-token",
    title: "settle does not compare the lease's token",
    procedure: "settle",
    changes: [
      ["c.lease_token = l.token and l.to_offset", "l.to_offset"],
      ["if r.lease_token is distinct from r.token or r.to", "if r.to"],
    ],
    // An ack that comes too late must meet a message that somebody else holds and does not ack either.
    load: { ...PATIENT, pushesPerSecond: 1, consumersPerGroup: 8, lateShare: 0.3, abandonedShare: 0.3 },
    noticedBy: ["fencing"],
  },
  {
    id: "settle-moves-cursor",
    title: "an ack moves the cursor, whatever is before it",
    procedure: "settle",
    changes: [
      [" and l.from_offset <= c.committed\n", "\n"],
      ["       and l.more is null and c.acked is null and c.failures is null\n", ""],
    ],
    noticedBy: ["finished without ack"],
  },
  {
    id: "settle-keeps-lease",
    title: "a lease whose messages are finished is not released",
    procedure: "settle",
    changes: [
      ["l.release or greatest(c.committed, l.to_offset) >= c.lease_until", "l.release"],
      ["r.release or v_committed[r.lease] >= r.lease_until", "r.release"],
    ],
    load: { leaseSeconds: 60 },
    noticedBy: ["state", "liveness"],
  },
  {
    id: "bury-early",
    title: "a message is a dead letter after its first failure",
    procedure: "settle_lease",
    changes: [["::int4 > p_retry_limit then", "::int4 > 0 then"]],
    load: { poisonShare: 0.02 },
    noticedBy: ["dead letter"],
  },
  {
    id: "bury-never",
    title: "a message that fails is never a dead letter",
    procedure: "settle_lease",
    changes: [["::int4 > p_retry_limit then", "::int4 > 1000000 then"]],
    load: { poisonShare: 0.02 },
    noticedBy: ["dead letter"],
  },
  {
    id: "bury-other",
    title: "a dead letter holds another message",
    procedure: "bury_range",
    changes: [
      ["queen.fragment_at(s.ends, s.body, n)", "queen.fragment_at(s.ends, s.body, greatest(0, n - 1))"],
    ],
    load: { poisonShare: 0.02 },
    noticedBy: ["dead letter"],
  },
  {
    id: "transact-unfenced",
    title: "a transaction pushes although its lease is lost and its messages are finished",
    procedure: "transact",
    changes: [
      [
        "if found then\n      raise exception 'Message already acknowledged'",
        "if false then\n      raise exception 'Message already acknowledged'",
      ],
      ["if v_row.status <> 0 then", "if false then"],
    ],
    load: { keyed: false, pipes: 4, lateShare: 0.2, leaseSeconds: 2 },
    noticedBy: ["exactly once"],
  },
  {
    id: "transact-many-unfenced",
    title: "transactions that go together push although a lease is lost",
    procedure: "transact_many",
    changes: [
      ["c.lease_token = l.token and c.committed <= l.from_offset and l.to_offset <= c.lease_until", "true"],
    ],
    load: { keyed: false, pipes: 4, lateShare: 0.2, leaseSeconds: 2 },
    noticedBy: ["exactly once"],
  },
  {
    id: "commit-unsafe",
    title: "PostgreSQL answers before a commit is on disk",
    also: "alter system set synchronous_commit = off",
    noticedBy: ["lost"],
    async faults(run) {
      await run.query("alter system set wal_writer_delay = '10s'");
      await run.query("select pg_reload_conf()");
      while (run.hasTime(1_000)) {
        await run.pause(1_000, 2_000);
        run.fault("PostgreSQL is killed");
        await run.postgres.kill();
        await run.postgres.start();
        await run.progressBy(50);
      }
    },
  },
];

export const MUTANTS: readonly FaultTest[] = BREAKAGES.map((mutant) => ({
  id: mutant.id,
  title: mutant.title,
  async run(run) {
    await run.startBrokers(2);
    if (mutant.also) await run.query(mutant.also);
    if (mutant.procedure) await run.query(mutated(mutant.procedure, mutant.changes ?? []));
    const changes = { abandonedShare: 0.02, lateShare: 0.02, leaseSeconds: 3, ...mutant.load };
    await run.underLoad(changes, () => mutant.faults?.(run) ?? Promise.resolve(), {
      drainMsMax: DRAIN_MS_MAX,
    });
    const { violations } = run.outcome;
    const noticed = Object.entries(violations).map(([rule, count]) => `${count} × ${rule}`);
    run.note(`noticed: ${noticed.join(", ") || "nothing"}`);
    if (mutant.noticedBy.length === 0) return;
    run.forgive();
    const isNoticed = mutant.noticedBy.some((rule) => (violations[rule] ?? 0) > 0);
    run.expect(isNoticed, `the mutant survived: the checker did not report ${mutant.noticedBy.join(" or ")}`);
  },
}));

/** The texts of all broken procedures; throws where a procedure has no longer what a mutant breaks. */
export const brokenProcedures = (): string[] =>
  BREAKAGES.flatMap(({ procedure, changes }) => (procedure ? [mutated(procedure, changes ?? [])] : []));

function mutated(procedure: string, changes: readonly (readonly [string, string])[]): string {
  const file = procedures().find(({ name }) => name === `procedures/${procedure}.sql`)!;
  let { text } = file;
  for (const [from, to] of changes) {
    if (!text.includes(from)) throw new Error(`${file.name} has no longer "${from}": adapt the mutant`);
    text = text.replaceAll(from, to);
  }
  return text;
}
