/** `queen explain` and `queen doctor`: what is wrong, and what to do. */
import { type Command, OPTION } from "../command.ts";
import { path } from "../connection.ts";
import { EXIT_CODES } from "../exit-codes.ts";
import { watchSeconds } from "../output/watch.ts";

interface Finding {
  readonly code: string;
  readonly severity: "ok" | "warning" | "critical";
  readonly message: string;
  readonly fix: string | null;
}

export const explain: Command = {
  name: "explain",
  summary: "Say why a partition does not move for a group",
  arguments: [
    { name: "queue", summary: "The queue" },
    { name: "partition", summary: "The partition; Default without it", isOptional: true },
  ],
  options: [OPTION.group, OPTION.watch],
  examples: [
    {
      line: "queen explain orders customer-42 --group billing",
      meaning: "Why does billing get nothing of this lane?",
    },
  ],
  async run(call) {
    const partition = call.optionalArgument("partition") ?? "Default";
    await call.output.watch(watchSeconds(call), async () => {
      await call.output.value(
        await call.api.request<object>(
          "GET",
          path`/api/v1/queues/${call.argument("queue")}/partitions/${partition}/explain`,
          { query: { consumerGroup: call.text("group") } },
        ),
      );
    });
    return undefined;
  },
};

export const doctor: Command = {
  name: "doctor",
  summary: "Look for what is wrong with PostgreSQL and the broker, and say what fixes it",
  details: "The exit code is 2 if something is critical.",
  options: [
    {
      flags: "--old-transaction <seconds>",
      summary: "Transactions that are open for longer are findings",
      fallback: 60,
      integer: { min: 0, max: 86_400 },
    },
    { flags: "--all", summary: "Show what is in order, too" },
    OPTION.watch,
  ],
  examples: [
    { line: "queen doctor", meaning: "Findings, with what fixes them" },
    { line: "queen doctor --all -o json", meaning: "Everything that was looked at" },
  ],
  async run(call) {
    let status = "ok";
    await call.output.watch(watchSeconds(call), async () => {
      const answer = await call.api.request<{ status: string; findings: Finding[] }>(
        "GET",
        "/api/v1/system/doctor",
        {
          query: { oldTransactionSeconds: call.integer("oldTransaction") },
        },
      );
      status = answer.status;
      const shown = answer.findings.filter(({ severity }) => call.flag("all") || severity !== "ok");
      if (call.output.format === "table" && shown.length === 0) {
        await call.output.write(`Nothing is wrong; ${answer.findings.length} things were looked at.\n`);
        return;
      }
      await call.output.list(shown, [
        { title: "SEVERITY", value: ({ severity }) => severity },
        { title: "CODE", value: ({ code }) => code },
        { title: "MESSAGE", value: ({ message }) => message, isFlexible: true },
        { title: "FIX", value: ({ fix }) => fix, isFlexible: true },
      ]);
    });
    return status === "critical" ? EXIT_CODES.server : undefined;
  },
};
