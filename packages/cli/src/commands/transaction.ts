/** `queen transaction`: pushes and acks in one commit. */
import type { Command } from "../command.ts";
import { UsageError } from "../exit-codes.ts";
import { openInput, readDocument } from "../input.ts";

export const transaction: Command = {
  name: "transaction",
  summary: "Do pushes and acks in one commit, all or nothing",
  details:
    'Reads {"operations": […], "requiredLeases": […]} as JSON, or one operation a line: {"type": "push", "items": […]} and ' +
    '{"type": "ack", "transactionId": …, "partitionId": …}.',
  options: [
    { flags: "-f, --file <path>", summary: "Read it from this file; standard input without it" },
    {
      flags: "--lease <leaseId>",
      summary: "A lease that must still be held; may be said again",
      isRepeatable: true,
    },
  ],
  examples: [
    { line: "queen transaction --file transaction.json", meaning: "From a file" },
    {
      line: `echo '{"type":"push","items":[{"queue":"invoices","payload":{}}]}' | queen transaction`,
      meaning: "Operations as lines",
    },
  ],
  async run(call) {
    const document = await readDocument(openInput(call.text("file")));
    const operations = operationsIn(document);
    const { requiredLeases = [] } = (Array.isArray(document) ? {} : document) as {
      requiredLeases?: string[];
    };
    await call.output.value(
      await call.api.request<object>("POST", "/api/v1/transaction", {
        body: { operations, requiredLeases: [...requiredLeases, ...call.texts("lease")] },
      }),
    );
    return undefined;
  },
};

function operationsIn(document: unknown): unknown[] {
  if (Array.isArray(document)) return document;
  if (typeof document === "object" && document !== null) {
    const { operations, type } = document as { operations?: unknown; type?: unknown };
    if (Array.isArray(operations)) return operations;
    if (typeof type === "string") return [document];
  }
  throw new UsageError('This is no transaction: it needs {"operations": […]}, or operations as lines');
}
