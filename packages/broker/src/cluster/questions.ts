/**
 * A question is what one worker of a broker wants to know of all the others, such as their figures. The primary passes
 * it on, gathers the answers and sends them back; who does not answer in time is left out and counted.
 *
 *   worker ──ask──▶ primary ──question──▶ the other workers that serve
 *     ▲                │ ◀────answer──────────┘
 *     └───answers──────┘ all of them, or those that came within a second
 */

/** Answers of the other workers, in no order. */
export interface Answers {
  readonly answers: readonly unknown[];
  /** Workers that were asked and did not answer in time. */
  readonly silent: number;
}

export interface AskMessage {
  readonly queen: "ask";
  readonly id: number;
  readonly question: string;
}

export interface QuestionMessage {
  readonly queen: "question";
  readonly id: number;
  readonly question: string;
}

export interface AnswerMessage {
  readonly queen: "answer";
  readonly id: number;
  readonly answer: unknown;
}

export interface AnswersMessage extends Answers {
  readonly queen: "answers";
  readonly id: number;
}

const ANSWER_MS_MAX = 1_000;
// The primary answers after the time above at the latest, unless it is very busy.
const PATIENCE_MS = 2_000;

interface Gathering<Peer> {
  readonly open: Set<Peer>;
  readonly answers: unknown[];
  readonly finish: () => void;
}

/** The primary's part. */
export class QuestionRelay<Peer> {
  readonly #send: (peer: Peer, message: QuestionMessage | AnswersMessage) => void;
  readonly #gatherings = new Map<number, Gathering<Peer>>();
  #lastId = 0;

  constructor(send: (peer: Peer, message: QuestionMessage | AnswersMessage) => void) {
    this.#send = send;
  }

  asked(from: Peer, others: readonly Peer[], { id: askedAs, question }: AskMessage): void {
    const id = ++this.#lastId;
    const open = new Set(others);
    const answers: unknown[] = [];
    const finish = (): void => {
      clearTimeout(deadline);
      this.#gatherings.delete(id);
      this.#send(from, { queen: "answers", id: askedAs, answers, silent: open.size });
    };
    const deadline = setTimeout(finish, ANSWER_MS_MAX);
    this.#gatherings.set(id, { open, answers, finish });
    for (const peer of others) this.#send(peer, { queen: "question", id, question });
    if (open.size === 0) finish();
  }

  answered(from: Peer, { id, answer }: AnswerMessage): void {
    const gathering = this.#gatherings.get(id);
    if (!gathering?.open.delete(from)) return;
    gathering.answers.push(answer);
    if (gathering.open.size === 0) gathering.finish();
  }
}

/** A worker's part: asks the others. */
export class Asker {
  readonly #send: (message: AskMessage) => void;
  readonly #waiting = new Map<number, (answers: Answers) => void>();
  #lastId = 0;

  constructor(send: (message: AskMessage) => void) {
    this.#send = send;
  }

  /** Never rejects: nobody's answer is a set of answers, too. */
  ask(question: string): Promise<Answers> {
    return new Promise((resolve) => {
      const id = ++this.#lastId;
      const finish = (answers: Answers): void => {
        clearTimeout(patience);
        this.#waiting.delete(id);
        resolve(answers);
      };
      const patience = setTimeout(() => finish({ answers: [], silent: 0 }), PATIENCE_MS);
      this.#waiting.set(id, finish);
      this.#send({ queen: "ask", id, question });
    });
  }

  received({ id, answers, silent }: AnswersMessage): void {
    this.#waiting.get(id)?.({ answers, silent });
  }
}
