/**
 * A history is what a queue still keeps of the past: messages of yesterday, as a broker has stored them, made
 * quickly. The first message of the queue, which a push has made, is copied into segments behind the last ones.
 * Yesterday is outside the window in which duplicates are recognised, as most of a real history is.
 */
import pg from "pg";

const SEGMENT_MESSAGES = 100;
// Segments in one statement: some hundred MB of log, so that checkpoints keep up.
const SEGMENTS_PER_STATEMENT = 10_000;

const MODEL = `
  select s.keys, s.ends, s.body, s.count
    from queen.segments s join queen.partitions p on p.id = s.partition_id join queen.queues q on q.id = p.queue_id
   where q.name = $1 order by p.id, s.first_offset limit 1`;
const AGE = `
  with lanes as (
    update queen.partitions p set last_at = now() - interval '1 day' from queen.queues q
     where q.id = p.queue_id and q.name = $1 returning p.id)
  update queen.segments s set created_at = now() - interval '2 days' from lanes where s.partition_id = lanes.id`;
const LANES = `
  select p.id from queen.partitions p join queen.queues q on q.id = p.queue_id where q.name = $1 order by p.id`;
const EXTEND = `
  with lanes as (
    update queen.partitions p set next_offset = p.next_offset + $2::int8 * $3
     where p.id = any ($1::int8[]) returning p.id, p.next_offset - $2::int8 * $3 as first, p.last_at)
  insert into queen.segments (partition_id, first_offset, count, created_at, keys, ends, body)
  select l.id, l.first + n * $3, $3, l.last_at, $4, $5, $6 from lanes l cross join generate_series(0, $2::int8 - 1) as n`;

/** Adds at least so many messages to the queue, spread over its partitions. */
export async function writeHistory(databaseUrl: string, queue: string, messages: number): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    await client.query("set synchronous_commit = off");
    const model = (await client.query<Segment>(MODEL, [queue])).rows[0];
    if (!model) throw new Error(`the queue ${queue} has no segment to copy`);
    await client.query(AGE, [queue]);
    const lanes = (await client.query<{ id: string }>(LANES, [queue])).rows.map(({ id }) => id);
    const segment = repeated(model, SEGMENT_MESSAGES);
    for (const { count, segments } of portions(Math.ceil(messages / segment.count), lanes.length)) {
      const values = [
        lanes.slice(0, count),
        segments,
        segment.count,
        segment.keys,
        segment.ends,
        segment.body,
      ];
      await client.query(EXTEND, values);
    }
    await client.query("vacuum analyze queen.partitions, queen.segments");
    // The window begins after a checkpoint, if the role may ask for one.
    const mayCheckpoint = "select pg_has_role('pg_checkpoint', 'member') as may";
    if ((await client.query<{ may: boolean }>(mayCheckpoint)).rows[0]!.may) await client.query("checkpoint");
  } finally {
    await client.end();
  }
}

/** Statements that give `total` segments to the lanes, in each to the first `count` of them the same number. */
export function portions(total: number, lanes: number): { count: number; segments: number }[] {
  const segmentsMax = Math.max(1, Math.floor(SEGMENTS_PER_STATEMENT / lanes));
  const result: { count: number; segments: number }[] = [];
  for (let left = total; left > 0; ) {
    const segments = Math.min(segmentsMax, Math.max(1, Math.floor(left / lanes)));
    const count = Math.min(lanes, left);
    result.push({ count, segments });
    left -= count * segments;
  }
  return result;
}

export interface Segment {
  readonly keys: Buffer;
  readonly ends: Buffer;
  readonly body: Buffer;
  readonly count: number;
}

/** A segment with the first message of another one, many times. */
export function repeated(model: Segment, count: number): Segment {
  const length = model.ends.readInt32BE(0);
  const ends = Buffer.alloc(4 * count);
  for (let index = 0; index < count; index += 1) ends.writeInt32BE(length * (index + 1), 4 * index);
  const each = (part: Buffer): Buffer => Buffer.concat(Array.from({ length: count }, () => part));
  return { keys: each(model.keys.subarray(0, 8)), ends, body: each(model.body.subarray(0, length)), count };
}
