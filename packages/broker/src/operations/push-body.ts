import {
  BrokerError,
  DEFAULT_PARTITION,
  NAME_LENGTH_MAX,
  PAYLOAD_DEPTH_MAX,
  PUSH_ITEMS_MAX,
  TRANSACTION_ID_LENGTH_MAX,
} from "@queen/protocol";
import { ENVELOPE_DEPTH_MAX, encodeString, JsonScanner, SEEN_ESCAPE } from "./json-scanner.ts";
import { checkName, subject } from "./names.ts";
import { readTraceparent } from "./traceparent.ts";
import { hash, hashText } from "./transaction-key.ts";

/**
 * A push item is one message on its way in. Its fragment is the part of the stored message that comes
 * from the producer, as a body text (see json-scanner.ts):
 *
 *   "transactionId":<string>,"traceId":<string or null>,"producerSub":<string or null>,"data":<payload>
 *
 * with `"traceparent":<string>,` before the payload where there is one: the item's own, or its request's.
 * The payload is the exact slice of the request. Its bytes are never decoded. The fragment and the
 * transactionId are slices that keep the whole body alive; the two names are copies, made to be kept.
 */
export interface PushItem {
  readonly queue: string;
  readonly partition: string;
  readonly transactionId: string;
  /** Both as they stand in the fragment. */
  readonly transactionIdJson: string;
  readonly traceIdJson: string;
  /** The halves of the transaction key. */
  readonly keyHigh: number;
  readonly keyLow: number;
  readonly fragment: string;
}

/**
 * The items of a push body, `{"items":[…]}`. Fields that the broker does not know are checked as JSON and
 * ignored; of a field that comes twice, the last one counts.
 */
export function parsePushBody(
  text: string,
  newTransactionId: () => string,
  producerSub: string | null,
  traceparent?: string,
): PushItem[] {
  const scanner = new JsonScanner(text);
  const reader = new PushItemReader(scanner, newTransactionId, producerSub, { traceparent });
  let items: PushItem[] | undefined;
  let problem: BrokerError | undefined;

  const start = scanner.skipWhitespace(0);
  let end: number;
  if (scanner.isObject(start)) {
    let key = scanner.openObject(start);
    while (!scanner.isClose(key)) {
      const keyEnd = scanner.skipString(key);
      const isItems = scanner.stringAt(key, keyEnd) === "items";
      const value = scanner.skipColon(keyEnd);
      if (isItems) {
        items = problem = undefined;
        try {
          if (scanner.isArray(value)) items = reader.readItems(value, "items");
        } catch (error) {
          // Bad JSON further on, or a second `items`, takes precedence over a bad item.
          if (!(error instanceof BrokerError) || error.code !== "VALIDATION_FAILED") throw error;
          problem = error;
        }
      }
      const valueEnd =
        isItems && items
          ? reader.end
          : scanner.skipValue(value, isItems ? ITEMS_DEPTH_MAX : PAYLOAD_DEPTH_MAX);
      key = scanner.nextMember(valueEnd);
    }
    end = key + 1;
  } else {
    end = scanner.skipValue(start);
  }
  scanner.expectEnd(end);

  if (problem) throw problem;
  if (!items) throw new BrokerError("VALIDATION_FAILED", "items array is required");
  return items;
}

/** Reads arrays of push items out of one body. */
export class PushItemReader {
  /** Where the array that was read last ends. */
  end = 0;

  private readonly scanner: JsonScanner;
  private readonly newTransactionId: () => string;
  private readonly missingPayload: string;
  private readonly producerPart: string;
  private readonly fragmentTail: string;
  private readonly fragmentMiddle: string;
  // Neighbouring items mostly name the same queue and partition: what was read last, and its name.
  private readonly queues: NameMemory = { start: 0, end: 0, name: "" };
  private readonly partitions: NameMemory = { start: 0, end: 0, name: "" };
  // And they mostly have the same keys in the same order: where those read last stand, each up to its value.
  private readonly keys: KeyMemory[] = [];
  // Where each field's value stands in the item being read; a start of 0 means that it is absent.
  private readonly starts = [0, 0, 0, 0, 0, 0, 0, 0];
  private readonly ends = [0, 0, 0, 0, 0, 0, 0, 0];
  private readonly seen = [0, 0, 0, 0, 0, 0, 0, 0];

  constructor(
    scanner: JsonScanner,
    newTransactionId: () => string,
    producerSub: string | null,
    options: { readonly missingPayload?: string; readonly traceparent?: string | undefined } = {},
  ) {
    this.scanner = scanner;
    this.newTransactionId = newTransactionId;
    this.missingPayload = options.missingPayload ?? "null";
    this.producerPart = `,"producerSub":${producerSub === null ? "null" : encodeString(producerSub)}`;
    this.fragmentTail = this.tailWith(options.traceparent);
    this.fragmentMiddle = `,"traceId":null${this.fragmentTail}`;
  }

  /** The items of the array at `pos`, which `path` names in messages. */
  readItems(pos: number, path: string): PushItem[] {
    const scanner = this.scanner;
    const items: PushItem[] = [];
    pos = scanner.openArray(pos);
    while (!scanner.isClose(pos)) {
      if (items.length === PUSH_ITEMS_MAX) {
        throw new BrokerError("VALIDATION_FAILED", `${path}: Items must be at most ${PUSH_ITEMS_MAX}`);
      }
      if (!scanner.isObject(pos)) {
        throw new BrokerError("VALIDATION_FAILED", `${path}[${items.length}]: Item must be an object`);
      }
      const end = this.findFields(pos);
      items.push(this.makeItem(path, items.length));
      pos = scanner.nextElement(end);
    }
    this.end = pos + 1;
    return items;
  }

  private findFields(pos: number): number {
    const { scanner, starts, ends, seen, keys } = this;
    for (let field = 0; field < FIELD_COUNT; field++) starts[field] = 0;
    let key = scanner.openObject(pos);
    for (let nth = 0; !scanner.isClose(key); nth++) {
      let field: number;
      let value: number;
      const known = keys[nth];
      if (known && sameBytes(scanner.bytes, key, key + known.end - known.start, known)) {
        field = known.field;
        value = scanner.skipWhitespace(key + known.end - known.start);
      } else {
        const keyEnd = scanner.skipString(key);
        field = fieldOf(scanner, key, keyEnd);
        value = scanner.skipColon(keyEnd);
        if (nth < FIELD_COUNT) keys[nth] = { start: key, end: value, field };
      }
      const end = scanner.skipValue(value);
      starts[field] = value;
      ends[field] = end;
      seen[field] = scanner.seen;
      key = scanner.nextMember(end);
    }
    return key + 1;
  }

  private makeItem(path: string, index: number): PushItem {
    const { scanner, starts, ends, seen } = this;
    const text = scanner.text;
    const queue = this.name(QUEUE, this.queues, path, index);
    const partition =
      starts[PARTITION] === 0 ? DEFAULT_PARTITION : this.name(PARTITION, this.partitions, path, index);

    let transactionId = this.optionalString(TRANSACTION_ID, path, index);
    const isGiven = transactionId !== undefined;
    let transactionIdJson: string;
    if (transactionId === undefined) transactionId = this.newTransactionId();
    else if (seen[TRANSACTION_ID] !== 0 || transactionId.length > TRANSACTION_ID_LENGTH_MAX) {
      const options = { lengthMax: TRANSACTION_ID_LENGTH_MAX };
      checkName(transactionId, `${path}[${index}].transactionId`, options);
    }
    if (isGiven && (seen[TRANSACTION_ID]! & SEEN_ESCAPE) === 0) {
      transactionIdJson = text.slice(starts[TRANSACTION_ID], ends[TRANSACTION_ID]);
      hash(scanner.bytes, starts[TRANSACTION_ID]! + 1, ends[TRANSACTION_ID]! - 1, keyHalves);
    } else {
      transactionIdJson = encodeString(transactionId);
      hashText(transactionId, keyHalves);
    }

    let traceIdJson = "null";
    let middle = this.fragmentMiddle;
    if (starts[TRACE_ID] !== 0 || starts[TRACEPARENT] !== 0) {
      const traceId = this.optionalString(TRACE_ID, path, index);
      if (traceId !== undefined && !UUID.test(traceId)) {
        throw new BrokerError("VALIDATION_FAILED", `${path}[${index}].traceId: TraceId must be a UUID`);
      }
      if (traceId !== undefined) traceIdJson = `"${traceId.toLowerCase()}"`;
      middle = `,"traceId":${traceIdJson}${this.ownTail()}`;
    }

    const payload = starts[PAYLOAD] !== 0 ? PAYLOAD : DATA;
    const data = starts[payload] === 0 ? this.missingPayload : text.slice(starts[payload], ends[payload]);
    const fragment = `"transactionId":${transactionIdJson}${middle}${data}`;
    return {
      queue,
      partition,
      transactionId,
      transactionIdJson,
      traceIdJson,
      keyHigh: keyHalves[0]!,
      keyLow: keyHalves[1]!,
      fragment,
    };
  }

  private tailWith(traceparent: string | undefined): string {
    return `${this.producerPart}${traceparent === undefined ? "" : `,"traceparent":"${traceparent}"`},"data":`;
  }

  private ownTail(): string {
    const start = this.starts[TRACEPARENT]!;
    const own =
      start !== 0 && this.scanner.isString(start)
        ? readTraceparent(this.scanner.stringAt(start, this.ends[TRACEPARENT]!))
        : undefined;
    return own === undefined ? this.fragmentTail : this.tailWith(own);
  }

  /** The name in a field, checked and copied. */
  private name(field: number, memory: NameMemory, path: string, index: number): string {
    const { scanner } = this;
    const start = this.starts[field]!;
    const end = this.ends[field]!;
    if (sameBytes(scanner.bytes, start, end, memory)) return memory.name;

    const length = end - start - 2;
    let name: string;
    if (scanner.isString(start) && this.seen[field] === 0 && length > 0 && length <= NAME_LENGTH_MAX) {
      name =
        length < SLICE_LENGTH_MIN
          ? scanner.text.slice(start + 1, end - 1)
          : scanner.bytes.toString("latin1", start + 1, end - 1);
    } else {
      const value = scanner.isString(start) ? scanner.stringAt(start, end) : undefined;
      name = checkName(value, `${path}[${index}].${FIELDS[field]}`, { allowEmpty: field === QUEUE });
    }
    memory.start = start;
    memory.end = end;
    memory.name = name;
    return name;
  }

  /** The string in a field where `null` and the empty string mean that it is absent. */
  private optionalString(field: number, path: string, index: number): string | undefined {
    const { scanner } = this;
    const start = this.starts[field]!;
    const end = this.ends[field]!;
    if (start === 0 || scanner.isNull(start)) return undefined;
    if (!scanner.isString(start)) {
      const name = FIELDS[field]!;
      throw new BrokerError(
        "VALIDATION_FAILED",
        `${path}[${index}].${name}: ${subject(name)} must be a string`,
      );
    }
    if (end - start === 2) return undefined;
    return this.seen[field] === 0 ? scanner.text.slice(start + 1, end - 1) : scanner.stringAt(start, end);
  }
}

interface Place {
  start: number;
  end: number;
}

interface NameMemory extends Place {
  name: string;
}

interface KeyMemory extends Place {
  readonly field: number;
}

const keyHalves = new Uint32Array(2);

const FIELDS = ["queue", "partition", "transactionId", "traceId", "payload", "data", "traceparent"];
const QUEUE = 0;
const PARTITION = 1;
const TRANSACTION_ID = 2;
const TRACE_ID = 3;
const PAYLOAD = 4;
const DATA = 5;
const TRACEPARENT = 6;
// V8 copies a shorter part of a string, and makes a slice of a longer one.
const SLICE_LENGTH_MIN = 13;

/** Unknown fields share one place, which nobody reads. */
const UNKNOWN = 7;
const FIELD_COUNT = 8;

const ITEMS_DEPTH_MAX = PAYLOAD_DEPTH_MAX + ENVELOPE_DEPTH_MAX;

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** The field that the key just skipped names. Its length and first letter leave one to compare with. */
function fieldOf(scanner: JsonScanner, start: number, end: number): number {
  if ((scanner.seen & SEEN_ESCAPE) !== 0) {
    const field = FIELDS.indexOf(scanner.stringAt(start, end));
    return field < 0 ? UNKNOWN : field;
  }
  const bytes = scanner.bytes;
  let field: number;
  switch (end - start - 2) {
    case 4:
      field = DATA;
      break;
    case 5:
      field = QUEUE;
      break;
    case 7:
      field = bytes[start + 1] === LOWER_T ? TRACE_ID : PAYLOAD;
      break;
    case 9:
      field = PARTITION;
      break;
    case 11:
      field = TRACEPARENT;
      break;
    case 13:
      field = TRANSACTION_ID;
      break;
    default:
      return UNKNOWN;
  }
  const key = KEYS[field]!;
  for (let at = 0; at < key.length; at++) {
    if (bytes[start + 1 + at] !== key[at]) return UNKNOWN;
  }
  return field;
}

const LOWER_T = 0x74;
const KEYS = FIELDS.map((name) => Buffer.from(name));

function sameBytes(bytes: Buffer, start: number, end: number, memory: Place): boolean {
  const length = end - start;
  if (length !== memory.end - memory.start || start === 0) return false;
  for (let at = 0; at < length; at++) {
    if (bytes[start + at] !== bytes[memory.start + at]) return false;
  }
  return true;
}
