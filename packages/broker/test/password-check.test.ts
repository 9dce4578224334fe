import assert from "node:assert/strict";
import { test } from "node:test";
import { BrokerError } from "@queen/protocol";
import { hashPassword, isPassword } from "../src/access/password.ts";
import { PasswordCheck } from "../src/access/password-check.ts";
import { TooManyRequests } from "../src/access/too-many-requests.ts";

test("a password is stored as a hash with its cost and a salt of its own", async () => {
  const [one, two] = await Promise.all([hashPassword("correct horse"), hashPassword("correct horse")]);
  assert.match(one, /^\$scrypt\$ln=15,r=8,p=3\$[A-Za-z0-9+/=]{24}\$[A-Za-z0-9+/=]{44}$/);
  assert.notEqual(one, two);
  assert.ok(await isPassword("correct horse", one));
  assert.ok(!(await isPassword("correct horse ", one)));
});

test("one that was hashed with another cost goes on to count, and one letter in two writings is one", async () => {
  const cheap = "$scrypt$ln=4,r=8,p=1$AAAAAAAAAAAAAAAAAAAAAA==$";
  const { scryptSync } = await import("node:crypto");
  const hash = scryptSync("caf\u00e9 au lait", Buffer.alloc(16), 32, { N: 16, r: 8, p: 1 }).toString(
    "base64",
  );
  assert.ok(await isPassword("cafe\u0301 au lait", cheap + hash));
});

function checked() {
  const clock = { ms: 0 };
  const compared: string[] = [];
  const told: string[] = [];
  let busy = 0;
  let busyMax = 0;
  const check = new PasswordCheck({
    read: async (name) =>
      name === "ada" || name === "old"
        ? { id: 1, password: "right", expiresAtMs: name === "old" ? 1 : null }
        : undefined,
    compare: async (password, stored) => {
      busyMax = Math.max(busyMax, ++busy);
      compared.push(stored);
      await new Promise((resolve) => setImmediate(resolve));
      busy -= 1;
      return password === stored;
    },
    wrong: (name, address) => told.push(`${name} from ${address}`),
    now: () => clock.ms,
  });
  const say = async (name: string, password: string, address = "a"): Promise<string> => {
    try {
      return `user ${(await check.check(name, password, address)).id}`;
    } catch (error) {
      assert.ok(error instanceof BrokerError);
      return error instanceof TooManyRequests ? `wait ${error.waitMs}` : error.message;
    }
  };
  return { clock, compared, told, say, busyMax: () => busyMax };
}

test("nobody's name is compared as anybody's, and answered in the same words", async () => {
  const { say, compared, told } = checked();
  assert.equal(await say("ada", "right"), "user 1");
  assert.equal(await say("ada", "wrong"), "Wrong user or password");
  assert.equal(await say("nobody", "wrong"), "Wrong user or password");
  assert.equal(await say("old", "right"), "Wrong user or password", "expired");
  assert.equal(compared.length, 4);
  assert.deepEqual(told, ["ada from a", "old from a"], "a name that nobody has may be a password");
  assert.match(compared[2]!, /^\$scrypt\$ln=15,r=8,p=3\$/);
});

test("guesses at a name come to an end, from wherever they come, also those that come at once", async () => {
  const { say, clock, compared } = checked();
  const many = await Promise.all(Array.from({ length: 15 }, (_, index) => say("ada", "wrong", `${index}`)));
  assert.equal(many.filter((each) => each.startsWith("wait")).length, 5);
  assert.equal(compared.length, 10, "the others were not compared");
  assert.equal(await say("ada", "right", "another"), "wait 10000");
  clock.ms = 10_000;
  assert.equal(await say("ada", "right", "another"), "user 1");
  assert.equal(await say("ada", "right", "another"), "user 1", "what was right costs nothing");
});

test("an address that tries many names is told to wait; another one is not", async () => {
  const { say } = checked();
  for (let index = 0; index < 30; index += 1)
    assert.equal(await say(`name ${index}`, "wrong"), "Wrong user or password");
  assert.equal(await say("name 31", "wrong"), "wait 1000");
  assert.equal(await say("name 31", "wrong", "another"), "Wrong user or password");
});

test("hashes are made one after the other, and only so many wait", async () => {
  const { say, busyMax } = checked();
  const many = await Promise.all(
    Array.from({ length: 20 }, (_, index) => say(`name ${index}`, "wrong", `address ${index}`)),
  );
  assert.equal(busyMax(), 1);
  assert.equal(many.filter((each) => each === "wait 2000").length, 4);
  assert.equal(many.filter((each) => each === "Wrong user or password").length, 16);
});
