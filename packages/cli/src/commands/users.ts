/** `queen users …`: who signs in to the page by name and password. */
import { type Command, OPTION } from "../command.ts";
import { confirm } from "../confirmation.ts";
import { path } from "../connection.ts";
import { askPassword } from "../password.ts";
import { grantOf, grantOptions } from "./grant.ts";

interface User {
  readonly name: string;
  readonly role: string;
  readonly queues: readonly string[] | null;
  readonly createdAt: string;
  readonly createdBy: string;
  readonly expiresAt: string | null;
  readonly passwordChangedAt: string;
  readonly sessions: number;
}

const PASSWORD =
  "The password is asked for, or is the first line of standard input where that is no terminal.";

export const usersAdd: Command = {
  name: "users add",
  summary: "Make a user, who signs in to the web page by name and password",
  details: PASSWORD,
  arguments: [{ name: "name", summary: "The name he signs in with" }],
  options: grantOptions("read-only"),
  examples: [
    { line: "queen users add ada --role admin", meaning: "Asks for the password" },
    { line: "pass show queen/bob | queen users add bob --queue 'orders*'", meaning: "By a script" },
  ],
  async run(call) {
    const name = call.argument("name");
    const body = { name, password: await askPassword(name), ...grantOf(call) };
    await call.output.value(await call.api.request<object>("POST", "/api/v1/system/users", { body }));
    return undefined;
  },
};

export const usersList: Command = {
  name: "users list",
  summary: "List users, by name",
  examples: [{ line: "queen users list", meaning: "Who may sign in" }],
  async run(call) {
    const { users } = await call.api.request<{ users: User[] }>("GET", "/api/v1/system/users");
    await call.output.list(users, [
      { title: "NAME", value: ({ name }) => name, isFlexible: true },
      { title: "ROLE", value: ({ role }) => role },
      { title: "QUEUES", value: ({ queues }) => queues?.join(", ") ?? "all", isFlexible: true },
      { title: "SESSIONS", value: ({ sessions }) => sessions },
      { title: "CREATED", value: ({ createdAt }) => createdAt },
      { title: "BY", value: ({ createdBy }) => createdBy, isFlexible: true },
      { title: "EXPIRES", value: ({ expiresAt }) => expiresAt },
    ]);
    return undefined;
  },
};

export const usersRemove: Command = {
  name: "users remove",
  summary: "Remove a user; his sessions end on every broker within a second",
  arguments: [{ name: "name", summary: "The user" }],
  options: [OPTION.yes],
  examples: [{ line: "queen users remove bob --yes", meaning: "Remove without asking" }],
  async run(call) {
    const name = call.argument("name");
    await confirm(call, `User ${name} will be removed, and is signed out everywhere`);
    await call.output.value(await call.api.request<object>("DELETE", path`/api/v1/system/users/${name}`));
    return undefined;
  },
};

export const usersPassword: Command = {
  name: "users password",
  summary: "Give a user another password; his sessions end on every broker within a second",
  details: PASSWORD,
  arguments: [{ name: "name", summary: "The user" }],
  examples: [{ line: "queen users password ada", meaning: "Asks for the new one" }],
  async run(call) {
    const name = call.argument("name");
    const password = await askPassword(name);
    await call.output.value(
      await call.api.request<object>("POST", path`/api/v1/system/users/${name}/password`, {
        body: { password },
      }),
    );
    return undefined;
  },
};
