/** The body of a trace: who noted what about which message. */
import { BrokerError, QUEUE_MODE_GROUP, TRACE_DATA_BYTES_MAX } from "@queen/protocol";
import { JsonScanner } from "./json-scanner.ts";
import { checkName } from "./names.ts";

export interface TraceBody {
  readonly transactionId: string;
  readonly partitionId: string;
  /** JSON as it was sent. */
  readonly data: string;
  readonly consumerGroup: string;
  readonly eventType: string;
  readonly names: readonly string[];
}

const NAMES_MAX = 100;
const EVENT_TYPE_DEFAULT = "info";

const invalid = (message: string): BrokerError => new BrokerError("VALIDATION_FAILED", message);

/** `text` is the body as a body text, `body` the same as JSON. */
export function parseTraceBody(text: string, body: unknown): TraceBody {
  const fields = (typeof body === "object" && body !== null ? body : {}) as Record<string, unknown>;
  const { transactionId, partitionId, consumerGroup, eventType, traceNames } = fields;
  if (!transactionId || !partitionId) throw invalid("transactionId and partitionId are required");
  if (typeof partitionId !== "string") throw invalid("partitionId must be a string.");
  const data = memberOf(text, "data");
  if (data === undefined) throw invalid("data is required");
  if (data.length > TRACE_DATA_BYTES_MAX) {
    throw invalid(
      `data may have ${TRACE_DATA_BYTES_MAX} bytes, got ${data.length}: what is large belongs into a message.`,
    );
  }
  return {
    transactionId: checkName(transactionId, "transactionId"),
    partitionId,
    data: Buffer.from(data, "latin1").toString("utf8"),
    consumerGroup: consumerGroup ? checkName(consumerGroup, "consumerGroup") : QUEUE_MODE_GROUP,
    eventType: eventType ? checkName(eventType, "eventType") : EVENT_TYPE_DEFAULT,
    names: checkNames(traceNames),
  };
}

function checkNames(value: unknown): string[] {
  if (!value) return [];
  if (typeof value === "string") return [checkName(value, "traceNames")];
  if (!Array.isArray(value)) throw invalid("traceNames must be a string or an array of strings.");
  if (value.length > NAMES_MAX) throw invalid(`traceNames may be at most ${NAMES_MAX}.`);
  return value.map((name, index) => checkName(name, `traceNames[${index}]`));
}

/** The text of a member's value; of a name that comes twice, the last one's. */
function memberOf(text: string, name: string): string | undefined {
  const scanner = new JsonScanner(text);
  const start = scanner.skipWhitespace(0);
  if (!scanner.isObject(start)) return undefined;
  let found: string | undefined;
  for (let key = scanner.openObject(start); !scanner.isClose(key); ) {
    const keyEnd = scanner.skipString(key);
    const value = scanner.skipColon(keyEnd);
    const end = scanner.skipValue(value);
    if (scanner.stringAt(key, keyEnd) === name) found = text.slice(value, end);
    key = scanner.nextMember(end);
  }
  return found;
}
