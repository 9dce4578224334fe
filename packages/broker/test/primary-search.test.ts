import assert from "node:assert/strict";
import { test } from "node:test";
import { PrimarySearch } from "../src/postgres/primary-search.ts";
import type { Server } from "../src/postgres/session.ts";

const [ONE, TWO] = [1, 2].map((port) => ({ host: "db", port })) as [Server, Server];

/** A search over two servers, and the ports that were tried. */
function search(): { find: () => Promise<number>; tried: number[]; setPrimary: (server?: Server) => void } {
  let primary: Server | undefined;
  const tried: number[] = [];
  const made = new PrimarySearch<number>([ONE, TWO], () => undefined);
  const connect = async ({ port }: Server): Promise<number> => {
    tried.push(port);
    if (primary?.port !== port) throw new Error(`${port} cannot be used`);
    return port;
  };
  return {
    find: () => made.find(connect),
    tried,
    setPrimary: (server) => {
      primary = server;
    },
  };
}

test("who comes later begins with the server that was found last", async () => {
  const { find, tried, setPrimary } = search();
  setPrimary(TWO);
  assert.equal(await find(), 2);
  assert.deepEqual(tried.splice(0), [1, 2]);
  assert.equal(await find(), 2);
  assert.deepEqual(tried, [2]);
});

test("while there is no primary one searches, and the others fail with it", async () => {
  const { find, tried } = search();
  await assert.rejects(find(), /no server can be used: 1 cannot be used; 2 cannot be used/);
  tried.splice(0);
  const outcomes = await Promise.allSettled([find(), find(), find()]);
  assert.ok(outcomes.every(({ status }) => status === "rejected"));
  assert.deepEqual(tried, [1, 2]);
});

test("those who waited for a search connect to what it found, each with a connection of its own", async () => {
  const { find, tried, setPrimary } = search();
  await assert.rejects(find());
  tried.splice(0);
  setPrimary(TWO);
  assert.deepEqual(await Promise.all([find(), find(), find()]), [2, 2, 2]);
  assert.deepEqual(tried, [1, 2, 2, 2]);
});
