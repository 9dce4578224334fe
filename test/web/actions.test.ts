/** Every action of the page does what it says: done in the browser, checked through the API. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import {
  checkAccessibility,
  noBrowser,
  openPage,
  startBrowser,
  type WatchedPage,
} from "../support/browser.ts";
import { type System, startSystem, until } from "../support/system.ts";

describe("what the web page does", { skip: noBrowser }, () => {
  let system: System;
  let browser: Browser;
  let watched: WatchedPage;
  let page: Page;
  before(async () => {
    system = await startSystem();
    browser = await startBrowser();
    watched = await openPage(browser);
    page = watched.page;
  });
  after(async () => {
    await browser?.close();
    await system?.stop();
  });

  // biome-ignore lint/suspicious/noExplicitAny: whatever the broker answers; a wrong shape fails the assertion on it
  const get = async (path: string): Promise<any> =>
    (await system.client.request("GET", `/api/v1/${path}`)).json;
  /** Figures are kept for a moment. */
  const holds = (queue: string, messages: number) =>
    until(
      `${queue} holds ${messages} messages`,
      async () => (await get(`resources/queues/${queue}`)).totals.total === messages,
    );
  const open = async (address: string): Promise<void> => {
    await page.goto(`${system.broker.url}/#/${address}`);
    await page.locator("main h1").waitFor();
  };
  const dialog = () => page.getByRole("dialog");
  const press = (name: string) =>
    page.locator("main").getByRole("button", { name, exact: true }).first().click();
  const told = (text: string | RegExp) => page.getByRole("status").getByText(text).first().waitFor();
  const push = (queue: string, count: number, partition = "Default") =>
    system.client.push(
      Array.from({ length: count }, (_, n) => ({
        queue,
        partition,
        transactionId: `t${n}`,
        payload: { n },
      })),
    );

  test("makes a queue, and changes only the options that were changed", async () => {
    await open("queues");
    await press("New queue");
    await dialog().getByLabel("Name", { exact: true }).fill("made.here");
    await dialog().getByLabel("Namespace, optional").fill("space");
    await dialog().getByRole("button", { name: "Make it" }).click();
    await page.getByRole("heading", { name: "made.here", level: 1 }).waitFor();
    await system.client.configure("made.here", { retryLimit: 7, leaseTime: 50 });

    await open("queues/made.here");
    await page.getByText("Lease time 50 s").first().waitFor();
    await press("Edit options");
    await dialog().getByLabel("Lease time, s").fill("42");
    await dialog().getByRole("combobox", { name: "Retention", exact: true }).selectOption("yes");
    await dialog().getByLabel("Retries", { exact: true }).fill("9");
    await dialog().getByLabel("Retries", { exact: true }).fill("7"); // as it was
    const sent = page.waitForRequest((request) => request.url().endsWith("/configure"));
    await dialog().getByRole("button", { name: "Save" }).click();
    assert.deepEqual((await sent).postDataJSON(), {
      queue: "made.here",
      mode: "merge",
      options: { leaseTime: 42, retentionEnabled: true },
    });
    await told(/Changed leaseTime, retentionEnabled/);
    const { queue } = await get("status/queues/made.here");
    assert.deepEqual(
      [queue.options.leaseTime, queue.options.retryLimit, queue.options.retentionEnabled],
      [42, 7, true],
    );
  });

  test("pauses a queue with a reason, and resumes it", async () => {
    await push("stops", 1);
    await open("queues/stops");
    await press("Pause");
    await dialog()
      .getByLabel(/Reason/)
      .fill("a test");
    await dialog().getByRole("button", { name: "Pause" }).click();
    await page.getByText("paused", { exact: true }).first().waitFor();
    assert.equal((await get("queues/stops/pauses")).pauses[0].reason, "a test");
    await press("Resume");
    await page.getByText("paused", { exact: true }).first().waitFor({ state: "detached" });
    assert.deepEqual((await get("queues/stops/pauses")).pauses, []);
  });

  test("clears and deletes a queue only when its name was typed", async () => {
    await push("goes", 5);
    await open("queues/goes");
    await press("Clear");
    const clear = dialog().getByRole("button", { name: "Remove all messages" });
    await dialog()
      .getByLabel(/to confirm/)
      .fill("other");
    assert.ok(await clear.isDisabled());
    await dialog()
      .getByLabel(/to confirm/)
      .fill("goes");
    await clear.click();
    await told("Removed 5 messages.");
    await holds("goes", 0);

    await press("Delete");
    await dialog().waitFor();
    await page.keyboard.press("Escape");
    await dialog().waitFor({ state: "detached" });
    await press("Delete");
    await dialog()
      .getByLabel(/to confirm/)
      .fill("goes");
    await dialog().getByRole("button", { name: "Delete the queue" }).click();
    await page.getByRole("heading", { name: "Queues", level: 1 }).waitFor();
    assert.equal((await system.client.request("GET", "/api/v1/resources/queues/goes")).status, 404);
  });

  test("explains a lane in words, pauses and clears it", async () => {
    await push("lanes", 3, "one");
    await system.client.pop("lanes", { consumerGroup: "worker" });
    await open("queues/lanes/lanes/one");
    await page
      .getByText(/^Leased|held|lease/i)
      .first()
      .waitFor();
    await press("Pause");
    await dialog().getByRole("button", { name: "Pause" }).click();
    await page
      .getByText(/Paused by/i)
      .first()
      .waitFor();
    assert.equal((await get("queues/lanes/pauses")).pauses[0].partition, "one");
    await press("Resume");
    await page
      .getByText(/Paused by/i)
      .first()
      .waitFor({ state: "detached" });
    await press("Clear");
    await dialog()
      .getByLabel(/to confirm/)
      .fill("one");
    await dialog().getByRole("button", { name: "Remove all messages" }).click();
    await told("Removed 3 messages.");
    await holds("lanes", 0);
  });

  test("retries, buries, copies and deletes a message", async () => {
    const [pushed] = await push("single", 2);
    const partition = pushed!.partition_id!;
    const { messages } = await system.client.pop("single", { consumerGroup: "worker" });
    await system.client.ackMessages(messages);
    await open(`messages/${partition}/t0`);
    await page.getByText("finished").first().waitFor();
    await press("Retry for worker");
    await told(/Retry: /);
    await page.getByText("waiting").first().waitFor();
    assert.equal((await get(`messages/${partition}/t0`)).consumerGroups[0].consumed, false);

    await press("To dead letters of worker");
    await told("Moved to the dead letters.");
    assert.equal((await get("dlq?queue=single")).total, 1);

    await holds("single", 3); // a retry of a finished message is a copy
    await press("Push a copy");
    await told(/A copy was pushed/);
    await holds("single", 4);

    await open(`messages/${partition}/t1`);
    await page.getByLabel("Payload", { exact: true }).waitFor();
    await press("Delete");
    await dialog()
      .getByLabel(/to confirm/)
      .fill("t1");
    await dialog().getByRole("button", { name: "Delete the message" }).click();
    await page.getByRole("heading", { name: "Default", level: 1 }).waitFor();
    assert.equal((await system.client.request("GET", `/api/v1/messages/${partition}/t1`)).status, 404);
  });

  test("finds messages by filter and by transactionId", async () => {
    await push("finds", 4, "p1");
    await open("messages?queue=finds");
    await page.getByRole("link", { name: "t3" }).waitFor();
    await page.getByLabel("Lane", { exact: true }).fill("nothing-here");
    await page.getByLabel("Lane", { exact: true }).press("Enter");
    await page.getByText("No messages").waitFor();
    await page.getByLabel("Lane", { exact: true }).fill("p1");
    await page.getByLabel("Lane", { exact: true }).press("Enter");
    await page.getByRole("link", { name: "t2" }).waitFor();
    await page.getByLabel("Find by transactionId, in the lane above").fill("t2");
    await press("Find");
    const found = page.getByRole("region", { name: "Found" });
    await found.getByRole("link", { name: "t2" }).click();
    await page.getByRole("heading", { name: "t2", level: 1 }).waitFor();
  });

  test("finds a transactionId without its lane, shows how far it is, and can be stopped", async () => {
    for (const lane of ["a", "b", "c"]) await push("wide", 4, lane);
    await system.client.push([{ queue: "wide", partition: "b", transactionId: "needle", payload: 1 }]);
    await open("messages?queue=wide&find=needle");
    const found = page.getByRole("region", { name: "Found" });
    await found.getByRole("link", { name: "needle" }).waitFor();
    await found.getByRole("link", { name: "b", exact: true }).waitFor();
    assert.equal(await page.getByRole("link", { name: "t3" }).count(), 0, "the list waits meanwhile");
    await press("Back to the list");
    await page.getByRole("link", { name: "t3" }).first().waitFor();
    await page.getByLabel("Find by transactionId, in the queue above").fill("nowhere");
    await press("Find");
    await found.getByText("There is no message with this transactionId.").waitFor();
    await found.getByText("searched 13 of 13 messages").waitFor();

    // A log that takes long: the broker is made to answer as if there were much more of it.
    let steps = 0;
    await page.route(/transactionId=nowhere/, async (route) => {
      steps += 1;
      const search = { searched: 40_000 * steps, total: 1_200_000 };
      await route.fulfill({ json: { messages: [], nextPage: `s1.1.${steps}..0.0`, search } });
    });
    await press("Find");
    await found.getByText(/searched \d+0,000 of 1,200,000 messages/).waitFor();
    await checkAccessibility(page, "a search");
    await found.getByRole("button", { name: "Stop" }).click();
    await found.getByRole("button", { name: "Search on" }).waitFor();
    await page.unroute(/transactionId=nowhere/);
    await found.getByRole("button", { name: "Search on" }).click();
    await found.getByText("There is no message with this transactionId.").waitFor();

    await page.getByLabel("Queue", { exact: true }).fill("");
    await page.getByLabel("Queue", { exact: true }).press("Enter");
    await page.getByLabel("Find by transactionId, in all queues").fill("needle");
    await press("Find");
    await found.getByRole("link", { name: "wide", exact: true }).waitFor();
  });

  test("says what a seek would do, does it, and forgets a group", async () => {
    await push("seeks", 6);
    const { messages } = await system.client.pop("seeks", { batch: 4, consumerGroup: "worker" });
    await system.client.ackMessages(messages);
    await open("groups/worker/seeks");
    await page.getByText("of 1 met").waitFor();
    await page.getByRole("img", { name: "Unfinished messages. Now: unfinished 2" }).waitFor();
    await page.getByRole("img", { name: /^Age of the oldest unfinished message\. Now: oldest/ }).waitFor();
    const week = page.waitForRequest((request) =>
      decodeURIComponent(request.url()).includes("groups/worker/queues/seeks/lag?minutes=10080"),
    );
    await page.getByRole("link", { name: "7 d" }).click();
    await week;
    await press("Seek");
    const again = dialog().locator("dd").first();
    await dialog().getByText("4 messages").waitFor(); // an hour ago: what was finished comes again
    assert.equal(await again.innerText(), "4 messages");
    await dialog()
      .getByLabel(/To the end/)
      .check();
    await dialog().getByText("2 messages").waitFor();
    await dialog().getByRole("button", { name: "Move the group" }).click();
    await told("worker was moved.");
    assert.equal((await get("consumer-groups?queue=seeks"))[0].totalLag, 0);

    await press("Seek");
    await dialog().getByText("6 messages").waitFor();
    await dialog().getByRole("button", { name: "Move the group" }).click();
    await dialog().waitFor({ state: "detached" });
    assert.equal((await get("consumer-groups?queue=seeks"))[0].totalLag, 6);

    await press("Delete");
    await dialog()
      .getByLabel(/to confirm/)
      .fill("worker");
    await dialog().getByRole("button", { name: "Forget the group" }).click();
    await page.getByRole("heading", { name: "Consumer groups", level: 1 }).waitFor();
    assert.deepEqual(await get("consumer-groups?queue=seeks"), []);
  });

  test("requeues one dead letter, those of an error, and purges the rest", async () => {
    await push("dead", 9);
    const { messages } = await system.client.pop("dead", { batch: 9, consumerGroup: "worker" });
    await system.client.ackMessages(messages.slice(0, 5), "dlq", "too hot");
    await system.client.ackMessages(messages.slice(5), "dlq", "too cold");
    await open("dead-letters?queue=dead");
    await page.getByRole("link", { name: "too hot" }).waitFor();
    await page.getByLabel("Choose t0").check();
    await press("Requeue 1");
    await dialog().getByRole("button", { name: "Requeue" }).click();
    await told("Requeued 1 dead letter.");
    assert.equal((await get("dlq?queue=dead")).total, 8);

    await page.getByRole("link", { name: "too hot" }).click();
    await page.getByRole("heading", { name: "Letters with this error" }).waitFor();
    await press("Requeue all");
    await dialog().getByRole("button", { name: "Requeue" }).click();
    await told("Requeued 4 dead letters.");
    assert.deepEqual(
      (await get("dlq/errors?queue=dead")).errors.map((row: { error: string; count: number }) => [
        row.error,
        row.count,
      ]),
      [["too cold", 4]],
    );

    await open("dead-letters?queue=dead");
    await page.getByRole("heading", { name: "All letters" }).waitFor();
    await page.getByRole("link", { name: "too cold" }).waitFor();
    await press("Purge all");
    await dialog()
      .getByLabel(/to confirm/)
      .fill("purge");
    await dialog().getByRole("button", { name: "Purge 4 letters" }).click();
    await told("Purged 4 dead letters.");
    assert.equal((await get("dlq?queue=dead")).total, 0);
    await holds("dead", 14);
  });

  test("switches maintenance on and off", async () => {
    await open("maintenance");
    const mode = page.getByRole("region", { name: "Pop maintenance" });
    await mode.getByRole("button", { name: "Switch on" }).click();
    await mode.getByText("on", { exact: true }).waitFor();
    assert.equal((await get("system/maintenance")).popMaintenanceMode, true);
    await mode.getByRole("button", { name: "Switch off" }).click();
    await mode.getByText("off", { exact: true }).waitFor();
    assert.equal((await get("system/maintenance")).popMaintenanceMode, false);
  });

  test("says nothing in the console meanwhile", () => {
    // A queue that is deleted while it is shown is answered 404, which the browser notes.
    assert.deepEqual(
      watched.complaints().filter((text) => !text.includes("404")),
      [],
    );
  });
});
