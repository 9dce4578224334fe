/** A transaction body: pushes and acks in one request. Payloads are sliced out, never parsed. */
import { BrokerError, PAYLOAD_DEPTH_MAX, TRANSACTION_OPERATIONS_MAX } from "@queen/protocol";
import { type AckItem, parseAckItem } from "./ack-body.ts";
import { ENVELOPE_DEPTH_MAX, JsonScanner } from "./json-scanner.ts";
import { type PushItem, PushItemReader } from "./push-body.ts";

export type TransactionOperation =
  | { readonly type: "push"; readonly item: PushItem }
  | { readonly type: "ack"; readonly ack: AckItem };

export interface TransactionBody {
  readonly operations: readonly TransactionOperation[];
  readonly requiredLeases: readonly string[];
}

const DEPTH_MAX = PAYLOAD_DEPTH_MAX + ENVELOPE_DEPTH_MAX;
// A transaction's push without a payload stores an empty object.
const MISSING_PAYLOAD = "{}";

/** Where the members of an object are: key → [start, end) of its value; the last of equal keys counts. */
function members(scanner: JsonScanner, at: number): { fields: Map<string, [number, number]>; end: number } {
  const fields = new Map<string, [number, number]>();
  let key = scanner.openObject(at);
  while (!scanner.isClose(key)) {
    const keyEnd = scanner.skipString(key);
    const name = scanner.stringAt(key, keyEnd);
    const value = scanner.skipColon(keyEnd);
    const end = scanner.skipValue(value, DEPTH_MAX);
    fields.set(name, [value, end]);
    key = scanner.nextMember(end);
  }
  return { fields, end: key + 1 };
}

const parse = (scanner: JsonScanner, [start, end]: readonly [number, number]): unknown =>
  JSON.parse(Buffer.from(scanner.text.slice(start, end), "latin1").toString("utf8"));

export function parseTransactionBody(
  text: string,
  newTransactionId: () => string,
  producerSub: string | null,
  traceparent?: string,
): TransactionBody {
  const scanner = new JsonScanner(text);
  const start = scanner.skipWhitespace(0);
  if (!scanner.isObject(start)) {
    scanner.expectEnd(scanner.skipValue(start));
    throw new BrokerError("VALIDATION_FAILED", "operations array required");
  }
  const { fields, end } = members(scanner, start);
  scanner.expectEnd(end);

  const list = fields.get("operations");
  if (!list || !scanner.isArray(list[0]))
    throw new BrokerError("VALIDATION_FAILED", "operations array required");
  const operations: TransactionOperation[] = [];
  let index = 0;
  for (let at = scanner.openArray(list[0]); !scanner.isClose(at); index++) {
    const path = `operations[${index}]`;
    if (!scanner.isObject(at))
      throw new BrokerError("VALIDATION_FAILED", `${path}: Operation must be an object`);
    const operation = members(scanner, at);
    const typeAt = operation.fields.get("type");
    const type = typeAt && parse(scanner, typeAt);
    if (type === "push") {
      const items = operation.fields.get("items");
      // A push without `items` is itself the one item.
      const list = items ? scanner.text.slice(...items) : `[${scanner.text.slice(at, operation.end)}]`;
      if (!list.startsWith("["))
        throw new BrokerError("VALIDATION_FAILED", `${path}.items: Items must be an array`);
      const reader = new PushItemReader(new JsonScanner(list), newTransactionId, producerSub, {
        missingPayload: MISSING_PAYLOAD,
        traceparent,
      });
      for (const item of reader.readItems(0, `${path}.items`)) operations.push({ type: "push", item });
    } else if (type === "ack") {
      operations.push({ type: "ack", ack: parseAckItem(parse(scanner, [at, operation.end]), path) });
    } else
      throw new BrokerError("VALIDATION_FAILED", `${path}.type: Unknown operation type: ${String(type)}`);
    if (operations.length > TRANSACTION_OPERATIONS_MAX) {
      throw new BrokerError("VALIDATION_FAILED", `operations must be at most ${TRANSACTION_OPERATIONS_MAX}`);
    }
    at = scanner.nextElement(operation.end);
  }
  if (operations.length === 0) throw new BrokerError("VALIDATION_FAILED", "operations array cannot be empty");

  const leases = fields.get("requiredLeases");
  const requiredLeases = leases ? (parse(scanner, leases) ?? []) : [];
  if (!Array.isArray(requiredLeases) || requiredLeases.some((lease) => typeof lease !== "string")) {
    throw new BrokerError("VALIDATION_FAILED", "requiredLeases: RequiredLeases must be an array of strings");
  }
  return { operations, requiredLeases: requiredLeases as string[] };
}
