/**
 * What a user's program does, run by each runtime: `<runtime> program.mjs <the client's module> <the broker's url>`.
 * Prints what came of it as one line of JSON.
 */
import { argv } from "node:process";

const { Queen } = await import(argv[2]);
const queen = new Queen(argv[3]);
const result = {};

// A handler that blocks the event loop for longer than its lease: only a worker thread can renew it meanwhile.
const orders = queen.queue("orders").config({ leaseTime: 2, retryDelay: 0, retryLimit: 5 });
await orders.create();
const [pushed] = await orders.partition("a").push({ data: { n: 1 } });
result.status = pushed.status;
result.deliveries = 0;
result.consumed = await orders
  .each()
  .limit(1)
  .consume(() => {
    result.deliveries++;
    for (const endMillis = Date.now() + 4000; Date.now() < endMillis; );
  });
result.left = (await orders.pop()).length;

// An iterator that is left gives back what it has, with the message at which it was left.
const chat = queen.queue("chat").partition("b");
await chat.push([1, 2, 3].map((n) => ({ data: { n } })));
result.iterated = [];
for await (const message of chat.messages({ group: "readers" })) {
  result.iterated.push(message.data.n);
  if (result.iterated.length === 2) break;
}
result.givenBack = (await chat.group("readers").batch(10).pop()).map((message) => message.data.n);

// Ack and push in one transaction.
const [first] = await chat.batch(1).pop();
await queen
  .transaction()
  .ack(first)
  .queue("bills")
  .push({ data: { of: first.data.n } })
  .commit();
result.bills = (await queen.queue("bills").pop()).map((message) => message.data.of);

// A client-side buffer is written when the client closes.
await queen
  .queue("logs")
  .buffer({ messageCount: 100, timeMillis: 60_000 })
  .push({ data: { line: 1 } });
await queen.close();
const reader = new Queen(argv[3]);
result.buffered = (await reader.queue("logs").pop()).map((message) => message.data.line);
await reader.close();

console.log(JSON.stringify(result));
