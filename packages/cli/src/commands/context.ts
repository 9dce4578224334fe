/** `queen context …`: the brokers that a person works with. */
import { type Command, OPTION } from "../command.ts";
import { confirm } from "../confirmation.ts";
import { type Context, checkedUrl, contextsFile, readContexts, writeContexts } from "../contexts.ts";
import { UsageError } from "../exit-codes.ts";

const NAME = { name: "name", summary: "The context's name" };

export const contextList: Command = {
  name: "context list",
  summary: "List contexts; * is the current one",
  examples: [{ line: "queen context list", meaning: "Which brokers there are" }],
  async run(call) {
    const { current, contexts } = readContexts(contextsFile(call.env), (text) => call.output.note(text));
    const rows = Object.entries(contexts).map(([name, { url, token }]) => ({
      current: name === current,
      name,
      url,
      hasToken: token !== undefined,
    }));
    await call.output.list(rows, [
      { title: "", value: (row) => (row.current ? "*" : "") },
      { title: "NAME", value: ({ name }) => name, isFlexible: true },
      { title: "URL", value: ({ url }) => url, isFlexible: true },
      { title: "TOKEN", value: ({ hasToken }) => (hasToken ? "yes" : "no") },
    ]);
    return undefined;
  },
};

export const contextSet: Command = {
  name: "context set",
  summary: "Make or change a context, and make it the current one",
  details:
    "The token is asked from --token (other users of the machine may see it there) or from standard input.",
  arguments: [NAME],
  options: [{ flags: "--token-stdin", summary: "Read the token from standard input" }],
  examples: [
    {
      line: "queen context set local --url http://localhost:6632",
      meaning: "A broker without authentication",
    },
    {
      line: "pass show queen | queen context set prod --url https://queen.example.com --token-stdin",
      meaning: "A broker with a token",
    },
  ],
  async run(call) {
    const name = call.argument("name");
    const file = contextsFile(call.env);
    const contexts = readContexts(file, (text) => call.output.note(text));
    const before = contexts.contexts[name];
    const url = call.text("url") ?? before?.url;
    if (url === undefined) throw new UsageError("--url is missing: where is the broker?");
    const given = call.flag("tokenStdin") ? await readAll(process.stdin) : call.text("token");
    // A token is for one broker: with another URL the old one is forgotten.
    const token = given ?? (url === before?.url ? before?.token : undefined);
    const context: Context = { url: checkedUrl(url), ...(token ? { token } : {}) };
    writeContexts(file, { current: name, contexts: { ...contexts.contexts, [name]: context } });
    call.output.note(`${name} is the current context, in ${file}`);
    return undefined;
  },
};

export const contextUse: Command = {
  name: "context use",
  summary: "Make a context the current one",
  arguments: [NAME],
  examples: [{ line: "queen context use prod", meaning: "From now on" }],
  async run(call) {
    const name = call.argument("name");
    const file = contextsFile(call.env);
    const { contexts } = readContexts(file, (text) => call.output.note(text));
    if (contexts[name] === undefined)
      throw new UsageError(`There is no context ${name}: see  queen context list`);
    writeContexts(file, { current: name, contexts });
    return undefined;
  },
};

export const contextDelete: Command = {
  name: "context delete",
  summary: "Forget a context and its token",
  arguments: [NAME],
  options: [OPTION.yes],
  examples: [{ line: "queen context delete prod --yes", meaning: "Forget it" }],
  async run(call) {
    const name = call.argument("name");
    const file = contextsFile(call.env);
    const { current, contexts } = readContexts(file, (text) => call.output.note(text));
    if (contexts[name] === undefined)
      throw new UsageError(`There is no context ${name}: see  queen context list`);
    await confirm(call, `Context ${name} will be forgotten, with its token`);
    const { [name]: _, ...rest } = contexts;
    writeContexts(file, {
      ...(current === undefined || current === name ? {} : { current }),
      contexts: rest,
    });
    return undefined;
  },
};

async function readAll(stream: NodeJS.ReadStream): Promise<string> {
  let text = "";
  for await (const chunk of stream.setEncoding("utf8")) text += chunk;
  return text.trim();
}
