import { BrokerError, NAME_LENGTH_MAX } from "@queen/protocol";

/**
 * A name is the text by which clients call a queue, a partition or a consumer group. It is counted in
 * characters (Unicode code points), and it has no control characters (U+0000 to U+001F, U+007F) and no
 * unpaired surrogates, because PostgreSQL stores neither U+0000 nor text that is not valid UTF-8 and
 * because nobody can read the rest on a dashboard.
 */
export interface NameOptions {
  readonly allowEmpty?: boolean;
  readonly lengthMax?: number;
}

/**
 * The checked name. `field` says where the text stands in the request («queue», «items[3].queue»); its
 * last part, with a capital letter, is the subject of the message: «items[3].queue: Queue must be a string».
 */
export function checkName(text: unknown, field: string, options?: NameOptions): string {
  const problem = nameProblem(text, options?.allowEmpty ?? false, options?.lengthMax ?? NAME_LENGTH_MAX);
  if (problem !== undefined) {
    throw new BrokerError("VALIDATION_FAILED", `${field}: ${subject(field)} must ${problem}`);
  }
  return text as string;
}

/** «items[3].transactionId» is about «TransactionId». */
export function subject(field: string): string {
  const name = field.slice(field.lastIndexOf(".") + 1);
  return name.slice(0, 1).toUpperCase() + name.slice(1);
}

const CONTROL_CHARACTER = /[^ -~\u0080-\uffff]/;
const UNPAIRED_SURROGATE = /\p{Surrogate}/u;

function nameProblem(text: unknown, allowEmpty: boolean, lengthMax: number): string | undefined {
  if (typeof text !== "string") return "be a string";
  if (text === "" && !allowEmpty) return "not be empty";
  if (isLongerThan(text, lengthMax)) return `have at most ${lengthMax} characters`;
  if (CONTROL_CHARACTER.test(text)) return "not contain control characters";
  if (UNPAIRED_SURROGATE.test(text)) return "not contain unpaired surrogates";
  return undefined;
}

/** A code point takes one or two units, so only lengths between the two bounds need counting. */
function isLongerThan(text: string, lengthMax: number): boolean {
  if (text.length <= lengthMax) return false;
  if (text.length > 2 * lengthMax) return true;
  let count = 0;
  for (const _ of text) count++;
  return count > lengthMax;
}
