/** Groups that are met at the same time are found by one call, and one that somebody holds keeps no other from being found. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Directory } from "../src/lanes/directory.ts";
import type { Group } from "../src/popping/group.ts";
import { GroupOpener } from "../src/popping/group-opener.ts";
import { PostgresError } from "../src/postgres/errors.ts";
import type { Session } from "../src/postgres/session.ts";

/** Opens groups of these queues at once; returns their ids and what each call asked for. A queue named "held" is. */
async function open(queues: readonly string[]): Promise<{ ids: (number | undefined)[]; calls: string[] }> {
  const calls: string[] = [];
  const run = async (_statement: unknown, [names]: [string[]]) => {
    calls.push(names.join(" "));
    if (names.includes("held"))
      throw new PostgresError({ sqlstate: "55P03", severity: "ERROR", message: "lock not available" });
    return names.map((name, opening) => ({ opening, queueId: Number(name), groupId: 10 * Number(name) }));
  };
  const directory = { queueById: async (id: number) => ({ id, hasReaders: false }) } as unknown as Directory;
  const opener = new GroupOpener(
    { directory, use: (work) => work({ run } as unknown as Session), beganToRead: () => undefined },
    () => undefined,
  );
  const groups = queues.map((queueName) => ({ queueName, name: "g" }) as Group);
  await Promise.all(groups.map((group) => opener.open(group, undefined)));
  return { ids: groups.map(({ id }) => id), calls };
}

test("groups that are met at once are found by one call", async () => {
  assert.deepEqual(await open(["1", "2", "3"]), { ids: [10, 20, 30], calls: ["1 2 3"] });
});

test("a group whose queue somebody holds is not found, and the others are", async () => {
  const { ids, calls } = await open(["1", "held", "3", "4"]);
  assert.deepEqual(ids, [10, undefined, 30, 40]);
  assert.deepEqual(calls.sort(), ["1", "1 held", "1 held 3 4", "3 4", "held"]);
});
