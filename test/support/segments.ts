/**
 * The parameters of append, made from plain messages: the bytes of segments are put together here a second
 * time, so that a mistake in the broker's own packing cannot hide in the tests of the procedures.
 */
import type pg from "pg";

export interface Message {
  readonly transactionId: string;
  /** The payload as JSON text; null if not given. */
  readonly data?: string;
  readonly traceId?: string;
  readonly producerSub?: string;
  /** The mark of an encrypted message; its `data` is what stands for the payload. */
  readonly keyId?: string;
}

export interface LaneAppend {
  readonly partition: number;
  /** The messages' keys were compared with everything below this offset. */
  readonly known: number;
  readonly messages: readonly Message[];
  /** The messages are encrypted; or said to be. */
  readonly sealed?: boolean;
}

export const fragmentOf = ({ transactionId, traceId, producerSub, keyId, data = "null" }: Message): string =>
  `"transactionId":${JSON.stringify(transactionId)},"traceId":${JSON.stringify(traceId ?? null)},` +
  `"producerSub":${JSON.stringify(producerSub ?? null)},` +
  `${keyId === undefined ? "" : `"isEncrypted":true,"keyId":"${keyId}",`}"data":${data}`;

/** The keys of transactionIds, as PostgreSQL computes them. */
export async function keysOf(client: pg.Client, transactionIds: readonly string[]): Promise<Buffer[]> {
  const { rows } = await client.query(
    `select int8send(hashtextextended(id, 0)) as key
       from unnest($1::text[]) with ordinality as t (id, place) order by place`,
    [transactionIds],
  );
  return rows.map((row) => row.key as Buffer);
}

/** The nine arrays of append, each lane's messages cut into segments of at most `segmentMessages`. */
export async function appendParameters(
  client: pg.Client,
  lanes: readonly LaneAppend[],
  segmentMessages = 3,
): Promise<unknown[]> {
  const columns: [number[], number[], number[], Buffer[], Buffer[], Buffer[]] = [[], [], [], [], [], []];
  for (const [index, { messages }] of lanes.entries()) {
    const keys = await keysOf(
      client,
      messages.map((message) => message.transactionId),
    );
    for (let from = 0; from < messages.length; from += segmentMessages) {
      const part = messages.slice(from, from + segmentMessages);
      const fragments = part.map((message) => Buffer.from(fragmentOf(message), "utf8"));
      const ends = Buffer.alloc(part.length * 4);
      let end = 0;
      for (const [place, fragment] of fragments.entries()) {
        end += fragment.length;
        ends.writeUInt32BE(end, place * 4);
      }
      const segment = [
        index + 1,
        from,
        part.length,
        Buffer.concat(keys.slice(from, from + part.length)),
        ends,
      ];
      for (const [column, value] of [...segment, Buffer.concat(fragments)].entries()) {
        (columns[column] as unknown[]).push(value);
      }
    }
  }
  return [
    lanes.map((lane) => lane.partition),
    lanes.map((lane) => lane.known),
    lanes.map((lane) => lane.messages.length),
    ...columns,
  ];
}
