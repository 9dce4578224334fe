/** All commands, in the order in which help and the manual show them. */
import type { Command } from "./command.ts";
import { adopt } from "./commands/adopt.ts";
import { bench } from "./commands/bench.ts";
import { completion } from "./commands/completion.ts";
import { contextDelete, contextList, contextSet, contextUse } from "./commands/context.ts";
import { maintenanceOff, maintenanceOn, maintenanceStatus, pause, resume } from "./commands/control.ts";
import { doctor, explain } from "./commands/diagnosis.ts";
import { dlqList, dlqPurge, dlqRequeue } from "./commands/dlq.ts";
import { groupsDelete, groupsList, groupsShow, groupsSubscribe, lag, seek } from "./commands/groups.ts";
import { keysCreate, keysList, keysRevoke } from "./commands/keys.ts";
import { config, migrate, serve } from "./commands/local.ts";
import {
  messagesBury,
  messagesDelete,
  messagesList,
  messagesRetry,
  messagesShow,
} from "./commands/messages.ts";
import { ack, pop } from "./commands/pop.ts";
import { push } from "./commands/push.ts";
import { partitions, queueClear, queueConfigure, queueDelete, queueShow, queues } from "./commands/queues.ts";
import { tail } from "./commands/tail.ts";
import { tracesNamed, tracesNames, tracesShow } from "./commands/traces.ts";
import { transaction } from "./commands/transaction.ts";
import { usersAdd, usersList, usersPassword, usersRemove } from "./commands/users.ts";

export interface Chapter {
  readonly title: string;
  readonly commands: readonly Command[];
}

export const CHAPTERS: readonly Chapter[] = [
  { title: "Messages", commands: [push, pop, ack, tail, transaction] },
  {
    title: "Queues",
    commands: [queues, queueShow, queueConfigure, queueClear, queueDelete, partitions, pause, resume],
  },
  {
    title: "Log and dead letters",
    commands: [
      messagesList,
      messagesShow,
      messagesRetry,
      messagesBury,
      messagesDelete,
      dlqList,
      dlqRequeue,
      dlqPurge,
      tracesNames,
      tracesNamed,
      tracesShow,
    ],
  },
  { title: "Consumer groups", commands: [groupsList, groupsShow, groupsSubscribe, groupsDelete, seek, lag] },
  {
    title: "Operation",
    commands: [
      explain,
      doctor,
      maintenanceStatus,
      maintenanceOn,
      maintenanceOff,
      keysCreate,
      keysList,
      keysRevoke,
      usersAdd,
      usersList,
      usersPassword,
      usersRemove,
      bench,
    ],
  },
  { title: "Broker and database", commands: [serve, config, migrate, adopt] },
  {
    title: "This command",
    commands: [contextList, contextSet, contextUse, contextDelete, completion(() => COMMANDS)],
  },
];

export const COMMANDS: readonly Command[] = CHAPTERS.flatMap(({ commands }) => commands);

/** Words that stand for several commands, and what they have in common. */
export const FAMILIES: Readonly<Record<string, string>> = {
  queue: "One queue: show, configure, clear, delete",
  messages: "The log: list, show, retry, dlq, delete",
  dlq: "Dead letters: list, requeue, purge",
  traces: "What consumers noted about messages: names, named, show",
  groups: "Consumer groups: list, show, subscribe, delete",
  maintenance: "Modes of maintenance: status, on, off",
  keys: "API keys: create, list, revoke",
  users: "Users of the web page: add, list, password, remove",
  context: "Brokers by name: list, set, use, delete",
};
