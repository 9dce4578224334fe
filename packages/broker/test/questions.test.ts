/** Questions between workers: everybody who answers in time is heard, and the others are counted. */
import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { type AnswersMessage, Asker, type QuestionMessage, QuestionRelay } from "../src/cluster/questions.ts";

function newRelay() {
  const sent: { peer: string; message: QuestionMessage | AnswersMessage }[] = [];
  const relay = new QuestionRelay<string>((peer, message) => sent.push({ peer, message }));
  return { relay, sent };
}

test("a question goes to all others, and their answers come back together under the asker's number", () => {
  const { relay, sent } = newRelay();
  relay.asked("a", ["b", "c"], { queen: "ask", id: 7, question: "how" });
  assert.deepEqual(
    sent.map(({ peer, message }) => [peer, message.queen]),
    [
      ["b", "question"],
      ["c", "question"],
    ],
  );
  const { id } = sent[0]!.message;
  relay.answered("c", { queen: "answer", id, answer: 3 });
  relay.answered("c", { queen: "answer", id, answer: 4 }); // once is enough
  assert.equal(sent.length, 2);
  relay.answered("b", { queen: "answer", id, answer: 2 });
  assert.deepEqual(sent.at(-1), {
    peer: "a",
    message: { queen: "answers", id: 7, answers: [3, 2], silent: 0 },
  });
  relay.answered("b", { queen: "answer", id, answer: 2 });
  assert.equal(sent.length, 3, "too late");
});

test("nobody else: answered at once; who does not answer is left out after a second and counted", () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  try {
    const { relay, sent } = newRelay();
    relay.asked("a", [], { queen: "ask", id: 1, question: "how" });
    assert.deepEqual(sent.at(-1)!.message, { queen: "answers", id: 1, answers: [], silent: 0 });
    relay.asked("a", ["b", "c"], { queen: "ask", id: 2, question: "how" });
    relay.answered("b", { queen: "answer", id: sent.at(-1)!.message.id, answer: 2 });
    mock.timers.tick(1_000);
    assert.deepEqual(sent.at(-1)!.message, { queen: "answers", id: 2, answers: [2], silent: 1 });
  } finally {
    mock.timers.reset();
  }
});

test("an asker whose primary says nothing gets no answers instead of waiting for ever", async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  try {
    const asker = new Asker(() => undefined);
    const asked = asker.ask("how");
    mock.timers.tick(2_000);
    assert.deepEqual(await asked, { answers: [], silent: 0 });
    asker.received({ queen: "answers", id: 1, answers: [1], silent: 0 });
  } finally {
    mock.timers.reset();
  }
});
