/** `queen keys …`: API keys. */
import { type Command, OPTION } from "../command.ts";
import { confirm } from "../confirmation.ts";
import { path } from "../connection.ts";
import { grantOf, grantOptions } from "./grant.ts";

interface Key {
  readonly id: string;
  readonly name: string;
  readonly role: string;
  readonly queues: readonly string[] | null;
  readonly createdAt: string;
  readonly createdBy: string;
  readonly expiresAt: string | null;
  readonly revokedAt: string | null;
}

export const keysCreate: Command = {
  name: "keys create",
  summary: "Make an API key; it is shown this once",
  arguments: [{ name: "name", summary: "Who it is for" }],
  options: grantOptions("read-write"),
  examples: [
    {
      line: "queen keys create shop --role produce --queue 'orders*'",
      meaning: "A key that may only push orders",
    },
    { line: "QUEEN_TOKEN=$(queen keys create ci -o json | jq -r .key)", meaning: "For a script" },
  ],
  async run(call) {
    await call.output.value(
      await call.api.request<object>("POST", "/api/v1/system/keys", {
        body: { name: call.argument("name"), ...grantOf(call) },
      }),
    );
    return undefined;
  },
};

export const keysList: Command = {
  name: "keys list",
  summary: "List API keys, without their secrets, the newest first",
  examples: [{ line: "queen keys list", meaning: "Who has a key" }],
  async run(call) {
    const { keys } = await call.api.request<{ keys: Key[] }>("GET", "/api/v1/system/keys");
    await call.output.list(keys, [
      { title: "ID", value: ({ id }) => id },
      { title: "NAME", value: ({ name }) => name, isFlexible: true },
      { title: "ROLE", value: ({ role }) => role },
      { title: "QUEUES", value: ({ queues }) => queues?.join(", ") ?? "all", isFlexible: true },
      { title: "CREATED", value: ({ createdAt }) => createdAt },
      { title: "BY", value: ({ createdBy }) => createdBy, isFlexible: true },
      { title: "EXPIRES", value: ({ expiresAt }) => expiresAt },
      { title: "REVOKED", value: ({ revokedAt }) => revokedAt },
    ]);
    return undefined;
  },
};

export const keysRevoke: Command = {
  name: "keys revoke",
  summary: "Revoke an API key, on every broker within a second",
  arguments: [{ name: "id", summary: "The key's id, as the list shows it" }],
  options: [OPTION.yes],
  examples: [{ line: "queen keys revoke 7 --yes", meaning: "Revoke without asking" }],
  async run(call) {
    const id = call.argument("id");
    await confirm(call, `Key ${id} will be revoked; whoever uses it is refused from then on`);
    await call.output.value(await call.api.request<object>("DELETE", path`/api/v1/system/keys/${id}`));
    return undefined;
  },
};
