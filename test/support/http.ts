/**
 * A client of the broker's HTTP interface as plain as possible: it sends what a test says and shows what
 * came back. It never retries and knows no status to be an error; but an answer that is not as the broker's
 * own description says fails the test.
 */
import { Agent, type IncomingHttpHeaders, request as sendRequest } from "node:http";
import { checkAnswer } from "./agreement.ts";

export interface HttpAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** The body as JSON; undefined if it is empty or no JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: whatever the broker answers; a wrong shape fails the assertion on it
  readonly json: any;
}

export interface PushItem {
  readonly queue: string;
  readonly partition?: string;
  readonly transactionId?: string;
  readonly traceId?: string;
  readonly payload?: unknown;
}

export interface PushResult {
  readonly index: number;
  readonly status: "queued" | "duplicate" | "buffered" | "failed";
  readonly transaction_id: string;
  readonly message_id: string;
  readonly partition_id?: string;
  readonly trace_id?: string | null;
  readonly queueName: string;
}

export interface PopQuery {
  readonly partition?: string;
  readonly batch?: number;
  readonly wait?: boolean;
  readonly timeout?: number;
  readonly consumerGroup?: string;
  readonly autoAck?: boolean;
  readonly partitions?: number;
  readonly subscriptionMode?: string;
  readonly subscriptionFrom?: string;
}

export interface PoppedMessage {
  readonly id: string;
  readonly transactionId: string;
  readonly traceId: string | null;
  readonly data: unknown;
  readonly producerSub: string | null;
  readonly createdAt: string;
  readonly partitionId: string;
  readonly partition: string;
  readonly leaseId: string;
  readonly consumerGroup: string;
}

/** An empty pop is a 204 without a body: no messages, and a reason in a header. */
export interface PopAnswer extends HttpAnswer {
  readonly messages: readonly PoppedMessage[];
  readonly emptyReason: string | undefined;
}

export interface Acknowledgment {
  readonly transactionId: string;
  readonly partitionId: string;
  readonly status?: "completed" | "success" | "failed" | "retry" | "dlq";
  readonly leaseId?: string;
  readonly error?: string;
}

export interface AckResult {
  readonly index: number;
  readonly transactionId: string;
  readonly success: boolean;
  readonly error: string | null;
  readonly queueName: string | null;
  readonly partitionName: string | null;
  readonly leaseReleased: boolean;
  readonly dlq: boolean;
}

export interface RequestOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

// Longer than the longest long poll that the broker grants by default.
const ANSWER_MS_MAX = 90_000;

export class HttpClient {
  readonly #url: string;
  readonly #agent = new Agent({ keepAlive: true });

  constructor(url: string) {
    this.#url = url;
  }

  /** A body that is a string or a Buffer is sent as it is, anything else as JSON. */
  request(method: string, path: string, body?: unknown, options: RequestOptions = {}): Promise<HttpAnswer> {
    const bytes =
      body === undefined || typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body);
    return new Promise((resolve, reject) => {
      const request = sendRequest(
        new URL(path, this.#url),
        {
          method,
          agent: this.#agent,
          timeout: ANSWER_MS_MAX,
          headers: {
            ...(bytes === undefined
              ? {}
              : { "content-type": "application/json", "content-length": Buffer.byteLength(bytes) }),
            ...options.headers,
          },
          ...(options.signal ? { signal: options.signal } : {}),
        },
        (response) => {
          const chunks: Buffer[] = [];
          response.on("data", (chunk: Buffer) => chunks.push(chunk));
          response.once("error", reject);
          response.once("end", () => {
            const text = Buffer.concat(chunks).toString("utf8");
            const { statusCode = 0, headers } = response;
            const answer = { status: statusCode, headers, text, json: parse(text) };
            try {
              checkAnswer(method, path, answer);
              resolve(answer);
            } catch (error) {
              reject(error);
            }
          });
        },
      );
      request.once("timeout", () =>
        request.destroy(new Error(`no answer to ${method} ${path} in ${ANSWER_MS_MAX} ms`)),
      );
      request.once("error", reject);
      request.end(bytes);
    });
  }

  async push(items: readonly PushItem[]): Promise<PushResult[]> {
    const answer = await this.request("POST", "/api/v1/push", { items });
    return expected(201, answer).json as PushResult[];
  }

  async pop(queue: string, query: PopQuery = {}, options: RequestOptions = {}): Promise<PopAnswer> {
    const { partition, ...parameters } = query;
    const path = `/api/v1/pop/queue/${encodeURIComponent(queue)}`;
    const named = partition === undefined ? path : `${path}/partition/${encodeURIComponent(partition)}`;
    const search = new URLSearchParams(
      Object.entries(parameters).map(([name, value]) => [name, String(value)] as [string, string]),
    );
    const answer = await this.request("GET", `${named}?${search}`, undefined, options);
    const reason = answer.headers["queen-empty-reason"];
    return {
      ...answer,
      messages: (answer.json?.messages ?? []) as PoppedMessage[],
      emptyReason: Array.isArray(reason) ? reason[0] : reason,
    };
  }

  /** Acknowledges all of them in one batch. */
  async ack(acknowledgments: readonly Acknowledgment[], consumerGroup?: string): Promise<AckResult[]> {
    const body = { acknowledgments, ...(consumerGroup === undefined ? {} : { consumerGroup }) };
    return expected(200, await this.request("POST", "/api/v1/ack/batch", body)).json as AckResult[];
  }

  /** Acknowledges what a pop delivered, all with the same status. */
  ackMessages(
    messages: readonly PoppedMessage[],
    status: NonNullable<Acknowledgment["status"]> = "completed",
    error?: string,
  ): Promise<AckResult[]> {
    const acknowledgments = messages.map(({ transactionId, partitionId, leaseId }) => ({
      transactionId,
      partitionId,
      leaseId,
      status,
      ...(error === undefined ? {} : { error }),
    }));
    return this.ack(acknowledgments, messages[0]?.consumerGroup);
  }

  extend(leaseId: string, seconds?: number): Promise<HttpAnswer> {
    return this.request(
      "POST",
      `/api/v1/lease/${encodeURIComponent(leaseId)}/extend`,
      seconds === undefined ? {} : { seconds },
    );
  }

  transaction(operations: readonly unknown[], requiredLeases?: readonly string[]): Promise<HttpAnswer> {
    const body = { operations, ...(requiredLeases === undefined ? {} : { requiredLeases }) };
    return this.request("POST", "/api/v1/transaction", body);
  }

  async configure(queue: string, options: Readonly<Record<string, unknown>> = {}): Promise<HttpAnswer> {
    return expected(200, await this.request("POST", "/api/v1/configure", { queue, options }));
  }

  close(): void {
    this.#agent.destroy();
  }
}

function expected(status: number, answer: HttpAnswer): HttpAnswer {
  if (answer.status === status) return answer;
  throw new Error(`the broker answered ${answer.status} instead of ${status}: ${answer.text}`);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
