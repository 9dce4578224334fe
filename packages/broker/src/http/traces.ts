/** The handlers of traces: note one, list by message, by name, and the names. */
import { BrokerError, parsePartitionId, partitionId, traceRecordId } from "@queen/protocol";
import type { NamedTraceRow, Page, TraceRow, Traces } from "../control/traces.ts";
import type { Keyring } from "../operations/encryption.ts";
import { encodeString } from "../operations/json-scanner.ts";
import { checkName } from "../operations/names.ts";
import { isoMilliseconds } from "../operations/timestamp.ts";
import { parseTraceBody } from "../operations/trace-body.ts";
import { json } from "./answers.ts";
import type { Answer, Request } from "./route.ts";

export class TraceRoutes {
  readonly #traces: Traces;
  readonly #keyring: Keyring;

  constructor(traces: Traces, keyring: Keyring) {
    this.#traces = traces;
    this.#keyring = keyring;
  }

  async add(request: Request): Promise<Answer> {
    const body = request.json();
    if (body === undefined) throw new BrokerError("INVALID_JSON", "Empty request body");
    const { partitionId: id, ...trace } = parseTraceBody(request.text(), body);
    const partition = parsePartitionId(checkUuid(id));
    if (partition === undefined) throw new BrokerError("NOT_FOUND", "Message not found");
    return json(201, {
      success: true,
      traceId: traceRecordId(await this.#traces.add({ ...trace, partition })),
    });
  }

  async ofMessage(request: Request, page: Page): Promise<Answer> {
    const partition = parsePartitionId(checkUuid(request.params.partitionId!));
    const transactionId = checkName(request.params.transactionId, "transactionId");
    const traces =
      partition === undefined ? [] : await this.#traces.ofMessage(partition, transactionId, page);
    return { status: 200, body: `{"traces":[${traces.map((trace) => `{${show(trace)}}`).join(",")}]}` };
  }

  async named(request: Request, page: Page): Promise<Answer> {
    const { traces, total } = await this.#traces.named(
      checkName(request.params.traceName, "traceName"),
      page,
    );
    return {
      status: 200,
      body:
        `{"traces":[${traces.map((trace) => this.#showNamed(trace)).join(",")}],"total":${total},` +
        `"pagination":{"limit":${page.limit},"offset":${page.offset}}}`,
    };
  }

  async names(page: Page): Promise<Answer> {
    const { names, total } = await this.#traces.names(page);
    return json(200, {
      trace_names: names.map(({ name, traces, messages, lastSeenUs }) => ({
        trace_name: name,
        trace_count: traces,
        message_count: messages,
        last_seen: isoMilliseconds(lastSeenUs),
      })),
      total,
      pagination: { limit: page.limit, offset: page.offset },
    });
  }

  #showNamed(trace: NamedTraceRow): string {
    return (
      `{${show(trace)},"transaction_id":${encodeString(trace.transactionId)},` +
      `"partition_id":"${partitionId(trace.partitionId)}","queue_name":${encodeString(trace.queue)},` +
      `"partition_name":${encodeString(trace.partition)},` +
      `"message_payload":${trace.fragment === null ? "null" : this.#keyring.show(trace.fragment).payload}}`
    );
  }
}

function checkUuid(text: string): string {
  if (/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)) return text;
  throw new BrokerError("VALIDATION_FAILED", `partitionId must be a UUID, got "${text.slice(0, 40)}".`);
}

/** As bytes, one per character: data and payloads are what was sent. */
function show(trace: TraceRow): string {
  return (
    `"id":"${traceRecordId(trace.id)}","event_type":${encodeString(trace.eventType)},"data":${trace.data},` +
    `"consumer_group":${encodeString(trace.consumerGroup)},"worker_id":${encodeString(trace.workerId)},` +
    `"created_at":"${isoMilliseconds(trace.createdAtUs)}","trace_names":${trace.names}`
  );
}
