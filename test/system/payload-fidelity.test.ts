/** Payloads come back byte for byte (P10): by pop, by dead letter, by transaction, in SQL; encrypted or not. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { assertSame, dataText, nested, PAYLOADS } from "../support/payloads.ts";
import { newQueue, type System, startSystem } from "../support/system.ts";

let system: System;

before(async () => {
  system = await startSystem({ QUEEN_ENCRYPTION_KEY: "5e".repeat(32) });
});
after(() => system?.stop());

const itemOf = (queue: string, index: number, payload: string): string =>
  `{"queue":"${queue}","partition":"p","transactionId":"t${index}","payload":${payload}}`;

async function pushAll(queue: string): Promise<void> {
  const items = PAYLOADS.map(([, payload], index) => itemOf(queue, index, payload));
  const answer = await system.client.request("POST", "/api/v1/push", `{"items":[${items.join(",")}]}`);
  assert.equal(answer.status, 201, answer.text.slice(0, 1_000));
}

async function popAll(queue: string): Promise<void> {
  for (const [what, payload] of PAYLOADS) {
    const answer = await system.client.pop(queue, { autoAck: true });
    assertSame(dataText(answer.text, ',"createdAt":"'), payload, what);
  }
}

for (const isEncrypted of [false, true]) {
  const kind = isEncrypted ? ", from an encrypted queue" : "";
  const makeQueue = async (): Promise<string> => {
    const queue = newQueue();
    if (isEncrypted) await system.client.configure(queue, { encryptionEnabled: true });
    return queue;
  };

  test(`pop gives every payload back byte for byte${kind}`, async () => {
    const queue = await makeQueue();
    await pushAll(queue);
    await popAll(queue);
  });

  test(`one pop of all of them gives the same${kind}`, async () => {
    const queue = await makeQueue();
    await pushAll(queue);
    const { text } = await system.client.pop(queue, { batch: 100 });
    let at = 0;
    for (const [what, payload] of PAYLOADS) {
      at = text.indexOf('"producerSub":null,"data":', at) + '"producerSub":null,"data":'.length;
      assertSame(text.slice(at, at + payload.length), payload, what);
      at += payload.length;
      assert.equal(text.slice(at, at + 14), ',"createdAt":"', what);
    }
  });

  test(`a broker that never saw the payloads gives the same${kind}`, async () => {
    const queue = await makeQueue();
    await pushAll(queue);
    const { client } = await system.another();
    for (const [what, payload] of PAYLOADS) {
      const answer = await client.pop(queue, { autoAck: true });
      assertSame(dataText(answer.text, ',"createdAt":"'), payload, what);
    }
  });

  test(`a transaction's pushes give the same${kind}`, async () => {
    const queue = await makeQueue();
    const items = PAYLOADS.map(([, payload], index) => itemOf(queue, index, payload));
    const half = items.length >> 1;
    const flat = items[0]!.replace("{", '{"type":"push",');
    const answer = await system.client.request(
      "POST",
      "/api/v1/transaction",
      `{"operations":[${flat},{"type":"push","items":[${items.slice(1, half)}]},{"items":[${items.slice(half)}],"type":"push"}]}`,
    );
    assert.equal(answer.status, 200, answer.text.slice(0, 1_000));
    await popAll(queue);
  });

  test(`dead letters hold the same${kind}`, async () => {
    const queue = await makeQueue();
    await pushAll(queue);
    const { messages } = await system.client.pop(queue, { batch: 100 });
    await system.client.ackMessages(messages, "dlq", "kept");
    for (const [index, [what, payload]] of PAYLOADS.entries()) {
      const offset = PAYLOADS.length - 1 - index; // newest first
      const answer = await system.client.request(
        "GET",
        `/api/v1/dlq?queue=${queue}&limit=1&offset=${offset}`,
      );
      assertSame(dataText(answer.text, ',"partitionId":"'), payload, what);
    }
  });

  test(`one message shows the same${kind}`, async () => {
    const queue = await makeQueue();
    await pushAll(queue);
    const [listed] = await system.client.push([{ queue, partition: "p", transactionId: "t0" }]);
    const partition = listed!.message_id.replace(/-8001-8000-.*/, "-8002-8000-000000000000");
    for (const [index, [what, payload]] of PAYLOADS.entries()) {
      const { text } = await system.client.request("GET", `/api/v1/messages/${partition}/t${index}`);
      const start = text.indexOf('"payload":') + '"payload":'.length;
      assertSame(text.slice(start, text.lastIndexOf(',"isEncrypted":')), payload, what);
      assert.ok(text.includes(`,"isEncrypted":${isEncrypted},`), what);
    }
  });
}

test("queen.messages shows the same", async () => {
  const queue = newQueue();
  await pushAll(queue);
  const rows = await system.database.query(
    `select m.payload::text, m.transaction_id from queen.messages m join queen.partitions p on p.id = m.partition_id
       join queen.queues q on q.id = p.queue_id where q.name = $1 order by m.message_offset`,
    [queue],
  );
  assert.equal(rows.length, PAYLOADS.length);
  for (const [index, [what, payload]] of PAYLOADS.entries()) {
    assertSame(rows[index]!.payload, payload, what);
    assert.equal(rows[index]!.transaction_id, `t${index}`);
  }
});

test("a transactionId with escapes means the same as one without, and is found by either", async () => {
  const queue = newQueue();
  const push = (transactionId: string) =>
    system.client.request(
      "POST",
      "/api/v1/push",
      `{"items":[{"queue":"${queue}","transactionId":"${transactionId}","payload":1}]}`,
    );
  const spellings = ['ä/\\"😀', '\\u00e4\\/\\\\\\"\\ud83d\\ude00', "\\u00E4\\u002f\\u005c\\u0022😀"];
  const results = [];
  for (const spelling of [spellings[0]!.replace(/[\\"]/g, "\\$&"), ...spellings.slice(1)]) {
    results.push((await push(spelling)).json[0]);
  }
  assert.deepEqual(
    results.map((result) => [result.status, result.transaction_id]),
    [
      ["queued", spellings[0]],
      ["duplicate", spellings[0]],
      ["duplicate", spellings[0]],
    ],
  );
  const { messages } = await system.client.pop(queue);
  assert.equal(messages[0]!.transactionId, spellings[0]);
  assert.equal((await system.client.ackMessages(messages))[0]!.success, true);
});

test("what cannot be kept is refused before anything is stored", async () => {
  const queue = newQueue();
  const bodies: [string, Buffer | string][] = [
    ["513 levels", itemOf(queue, 0, nested(513, "[", "]"))],
    ["a raw control character", itemOf(queue, 0, '"\u0000"')],
    ["a raw newline", itemOf(queue, 0, '"\n"')],
    ["bytes that are no UTF-8", Buffer.from(itemOf(queue, 0, '"\xff"'), "latin1")],
    ["an encoded surrogate", Buffer.from(itemOf(queue, 0, '"\xed\xa0\x80"'), "latin1")],
    ["an overlong NUL", Buffer.from(itemOf(queue, 0, '"\xc0\x80"'), "latin1")],
    ["a number with a leading zero", itemOf(queue, 0, "01")],
    ["an escape that does not exist", itemOf(queue, 0, '"\\x"')],
    ["NaN", itemOf(queue, 0, "NaN")],
  ];
  for (const [what, item] of bodies) {
    for (const [path, open, close] of [
      ["push", '{"items":[', "]}"],
      ["transaction", '{"operations":[{"type":"push","items":[', "]}]}"],
    ] as const) {
      const body = Buffer.concat([Buffer.from(open), Buffer.from(item), Buffer.from(close)]);
      const answer = await system.client.request("POST", `/api/v1/${path}`, body);
      assert.deepEqual([answer.status, answer.json?.code], [400, "INVALID_JSON"], `${what}: ${answer.text}`);
    }
  }
  assert.equal(
    (await system.database.query("select 1 from queen.queues where name = $1", [queue])).length,
    0,
  );
});
