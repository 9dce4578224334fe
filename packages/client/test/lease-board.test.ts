/** What the client writes on the board, the other side sees at its next look, whole; what is gone by then it never sees. */
import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { BoardWatch, LeaseBoard } from "../src/lease-board.ts";
import type { Lease } from "../src/lease-renewer.ts";

beforeEach(() => mock.timers.enable({ apis: ["setTimeout"] }));
afterEach(() => mock.timers.reset());

const LOOK = 100;
const lease = (leaseId: string, affinityKey = "orders:*:billing"): Lease => ({
  leaseId,
  seconds: 60,
  affinityKey,
});

/** A board and its watch in one thread. What they say to each other arrives when it is delivered. */
function boardAndWatch() {
  const heard: string[] = [];
  const onTheWay: (() => void)[] = [];
  const held: Lease[] = [];
  let slots = 0;
  let wakes = 0;
  const board = new LeaseBoard(
    (memory) => {
      slots++;
      onTheWay.push(() => watch.hang(memory));
    },
    () => {
      wakes++;
      onTheWay.push(() => watch.wake());
    },
  );
  const watch = new BoardWatch(board.sleep, {
    hold: (each) => {
      held.push(each);
      heard.push(`+${each.leaseId}`);
    },
    release: (leaseId) => void heard.push(`-${leaseId}`),
  });
  return {
    board,
    held,
    heard,
    deliver: () => {
      for (const each of onTheWay.splice(0)) each();
    },
    look: (times = 1) => {
      for (let time = 0; time < times; time++) mock.timers.tick(LOOK);
    },
    counts: () => ({ slots, wakes }),
  };
}

test("a lease in hand is seen once, and so is that it was let go", () => {
  const { board, heard, held, deliver, look } = boardAndWatch();
  const letGo = board.hold(lease("a"));
  deliver();
  look(3);
  assert.deepEqual(heard, ["+a"]);
  assert.deepEqual(held, [lease("a")]);
  letGo();
  look(3);
  assert.deepEqual(heard, ["+a", "-a"]);
});

test("leases that come and go between two looks are not heard of, and share one slot", () => {
  const { board, heard, deliver, look, counts } = boardAndWatch();
  board.hold(lease("a"))();
  deliver();
  for (let number = 0; number < 1_000; number++) board.hold(lease(`b${number}`))();
  look();
  assert.deepEqual(heard, []);
  assert.deepEqual(counts(), { slots: 1, wakes: 0 });
});

test("a slot that was used again meanwhile tells of both leases", () => {
  const { board, heard, deliver, look } = boardAndWatch();
  const letGo = board.hold(lease("a"));
  deliver();
  letGo();
  board.hold(lease("b"));
  look();
  assert.deepEqual(heard, ["+a", "-a", "+b"]);
});

test("as many leases as are in hand have slots, of any length", () => {
  const { board, heard, held, deliver, look, counts } = boardAndWatch();
  const long = lease("long", `${"ü\u{1f600}".repeat(3_000)}`);
  const letGo = [lease("a"), long, lease("b")].map((each) => board.hold(each));
  deliver();
  look();
  assert.deepEqual(heard, ["+a", "+long", "+b"]);
  assert.deepEqual(held[1], long);
  for (const each of letGo) each();
  board.hold(long);
  look();
  assert.deepEqual(heard.slice(3), ["-a", "-long", "+long", "-b"]);
  assert.equal(counts().slots, 3);
});

test("a slot that is being written is read by a later look", () => {
  let memory: SharedArrayBuffer | undefined;
  const writing = new LeaseBoard(
    (given) => {
      memory = given;
    },
    () => undefined,
  );
  writing.hold(lease("half"));
  const head = new Int32Array(memory!, 0, 2);
  const version = head[0]!;
  const heard: string[] = [];
  const watch = new BoardWatch(writing.sleep, {
    hold: ({ leaseId }) => void heard.push(leaseId),
    release: () => undefined,
  });
  head[0] = version - 1; // as it is before the last step of writing
  watch.hang(memory!);
  mock.timers.tick(LOOK);
  assert.deepEqual(heard, []);
  head[0] = version;
  mock.timers.tick(LOOK);
  assert.deepEqual(heard, ["half"]);
});

test("whoever looked at an empty board for long sleeps, and is woken once there is a lease", () => {
  const { board, heard, deliver, look, counts } = boardAndWatch();
  board.hold(lease("a"))();
  deliver();
  look(150);
  const letGo = board.hold(lease("b"));
  look(10);
  assert.deepEqual([heard, counts().wakes], [[], 1]);
  deliver();
  assert.deepEqual(heard, ["+b"]);
  look(200); // a board with a lease is not empty
  letGo();
  board.hold(lease("c"));
  look();
  assert.deepEqual([heard, counts().wakes], [["+b", "-b", "+c"], 1]);
});
