import assert from "node:assert/strict";
import { test } from "node:test";
import { chooseContext, DEFAULT_URL } from "../src/contexts.ts";

const CONTEXTS = {
  current: "one",
  contexts: {
    one: { url: "http://one", token: "token-one" },
    two: { url: "http://two", token: "token-two" },
  },
};

test("flags, then the context that is named, then the environment, then the current context, then this machine", () => {
  const env = { QUEEN_URL: "http://env", QUEEN_TOKEN: "token-env" };
  assert.deepEqual(chooseContext({}, {}, { contexts: {} }), { url: DEFAULT_URL });
  assert.deepEqual(chooseContext({}, {}, CONTEXTS), { url: "http://one", token: "token-one" });
  assert.deepEqual(chooseContext({}, env, CONTEXTS), { url: "http://env", token: "token-env" });
  assert.deepEqual(chooseContext({ context: "two" }, env, CONTEXTS), {
    url: "http://two",
    token: "token-two",
  });
  assert.deepEqual(chooseContext({ url: "http://flag/", token: "t" }, env, CONTEXTS), {
    url: "http://flag",
    token: "t",
  });
  assert.deepEqual(chooseContext({}, { QUEEN_TOKEN: "token-env" }, CONTEXTS), {
    url: "http://one",
    token: "token-env",
  });
});

test("the token of a context goes to no other broker", () => {
  assert.deepEqual(chooseContext({}, { QUEEN_URL: "http://other" }, CONTEXTS), { url: "http://other" });
  assert.deepEqual(chooseContext({ url: "http://other" }, {}, CONTEXTS), { url: "http://other" });
  assert.deepEqual(chooseContext({ url: "http://other", context: "two" }, {}, CONTEXTS), {
    url: "http://other",
  });
});

test("a context that is not there and a URL that is none are named", () => {
  assert.throws(
    () => chooseContext({ context: "three" }, {}, CONTEXTS),
    /There is no context three \(there are: one, two\)/,
  );
  assert.throws(
    () => chooseContext({ url: "localhost:6632" }, {}, CONTEXTS),
    /"localhost:6632" is no URL of a broker/,
  );
});
