/** Attacks with acks: unknown, foreign, repeated, mixed. */
import type { Attack, Notes, Target } from "../attack.ts";

async function acks({ client, share }: Target, notes: Notes): Promise<void> {
  const queue = "acks-under-attack";
  await client.push(
    Array.from({ length: 20 }, (_, payload) => ({
      queue,
      partition: "a",
      transactionId: `t${payload}`,
      payload,
    })),
  );
  await client.push([{ queue, partition: "b", transactionId: "other", payload: 1 }]);
  const { messages } = await client.pop(queue, { partition: "a", batch: 10 });
  const foreign = (await client.pop(queue, { partition: "b" })).messages[0]!;
  const one = messages[0]!;
  const { transactionId, partitionId, leaseId } = one;
  const wrong = {
    "an unknown message": { transactionId: "unknown", partitionId, leaseId },
    "a foreign partition": { transactionId, partitionId: foreign.partitionId, leaseId },
    "a foreign lease": { transactionId, partitionId, leaseId: foreign.leaseId },
    "a made-up lease": { transactionId, partitionId, leaseId: "00000000-0000-7000-8000-000000000000" },
    "no lease at all": { transactionId, partitionId, leaseId: "not a lease" },
    "what was not delivered": { transactionId: "t15", partitionId, leaseId },
  };
  for (const [what, ack] of Object.entries(wrong)) {
    const { status, json } = await client.request("POST", "/api/v1/ack", ack);
    notes.saw(
      what,
      `${status} ${json?.[0]?.success ?? json?.code}`,
      (status === 200 && json[0].success === false) || status === 400,
    );
  }
  const unknown = await client.request("POST", "/api/v1/ack", {
    transactionId,
    partitionId,
    leaseId,
    status: "perhaps",
  });
  notes.saw("an unknown status", unknown.json[0].success, unknown.json[0].success === false);
  const [first] = await client.ackMessages([one]);
  notes.saw("the right ack", String(first!.success), first!.success);
  for (let round = 0; round < 1_000 * share; round += 1) {
    const [again] = await client.ackMessages([one]);
    notes.saw("the same ack again", String(again!.success), again!.success && !again!.leaseReleased);
  }
  const many = Array.from({ length: Math.max(100, Math.round(10_000 * share)) }, (_, index) => ({
    transactionId: index % 2 === 0 ? `none${index}` : messages[1]!.transactionId,
    partitionId,
    leaseId,
  }));
  const results = await client.ack(many);
  notes.saw(
    "a mixed batch",
    results.length,
    results.every((each, index) => each.success === (index % 2 === 1)),
  );
  const rest = await client.ackMessages(messages.slice(2));
  notes.saw(
    "the rest of the lease",
    String(rest.at(-1)!.leaseReleased),
    rest.every((each) => each.success) && rest.at(-1)!.leaseReleased,
  );
  const next = await client.pop(queue, { partition: "a", batch: 100, autoAck: true });
  notes.saw(
    "what comes next",
    next.messages[0]?.transactionId ?? "nothing",
    next.messages[0]?.transactionId === "t10" && next.messages.length === 10,
  );
}

export const ackAttacks: readonly Attack[] = [
  { id: "B16", what: "acks that are wrong in every way", run: acks },
];
