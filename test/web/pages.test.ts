/** Every view opens under load, says nothing in the console, and is accessible in both themes and on a phone. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Browser } from "playwright-core";
import { checkAccessibility, noBrowser, openPage, startBrowser } from "../support/browser.ts";
import { type System, startSystem } from "../support/system.ts";
import { fill, type View, viewsOf } from "./views.ts";

describe("the web page", { skip: noBrowser }, () => {
  let system: System;
  let browser: Browser;
  let views: View[];
  const load = new AbortController();
  before(async () => {
    system = await startSystem();
    browser = await startBrowser();
    views = viewsOf(await fill(system.client));
    void work(system, load.signal);
  });
  after(async () => {
    load.abort();
    await browser?.close();
    await system?.stop();
  });

  for (const colorScheme of ["light", "dark"] as const) {
    test(`shows every view without a complaint, accessible (${colorScheme})`, async () => {
      const { page, complaints, close } = await openPage(browser, { colorScheme });
      for (const { name, address, shows } of views) {
        await page.goto(`${system.broker.url}/#/${address}`);
        const shown = page.locator("main").getByText(shows, { exact: false });
        const labelled = page.locator("main").getByLabel(shows, { exact: false });
        await shown.or(labelled).first().waitFor();
        assert.equal(await page.locator("h1").count(), 1, `${name} has one title`);
        await checkAccessibility(page, `${name} (${colorScheme})`);
        assert.deepEqual(complaints(), [], name);
      }
      await close();
    });
  }

  test("fits a phone: nothing is wider than the screen, and the menu opens", async () => {
    const { page, complaints, close } = await openPage(browser, { viewport: { width: 390, height: 800 } });
    for (const { name, address, shows } of views) {
      await page.goto(`${system.broker.url}/#/${address}`);
      await page
        .locator("main")
        .getByText(shows, { exact: false })
        .or(page.locator("main").getByLabel(shows, { exact: false }))
        .first()
        .waitFor();
      const overflow = await page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth",
      );
      assert.equal(overflow, 0, `${name} is wider than the screen`);
    }
    await page.getByRole("button", { name: "Menu" }).click();
    await page.getByRole("link", { name: "Queues", exact: true }).click();
    await page.getByRole("heading", { name: "Queues", level: 1 }).waitFor();
    await checkAccessibility(page, "queues on a phone");
    assert.deepEqual(complaints(), []);
    await close();
  });

  test("can be used by keyboard: a link is followed, and the focus is on the new title", async () => {
    const { page, close } = await openPage(browser);
    await page.goto(`${system.broker.url}/#/queues`);
    await page.getByRole("link", { name: "shop.orders" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "shop.orders", level: 1 }).waitFor();
    await page.waitForFunction("document.activeElement.tagName === 'H1'");
    assert.match(await page.title(), /shop\.orders · Queen/);
    await close();
  });

  test("shows what happens without being loaded again, by one stream", async () => {
    const { page, close } = await openPage(browser);
    const streams: string[] = [];
    page.on("request", (request) => {
      if (request.resourceType() === "eventsource") streams.push(request.url());
    });
    await page.goto(`${system.broker.url}/#/queues?search=live`);
    await page.getByText("No queue has this in its name").waitFor();
    await system.client.push([{ queue: "live-1", payload: 1 }]);
    await page.getByRole("link", { name: "live-1" }).waitFor();
    assert.equal(streams.length, 1, "one stream per view");
    await close();
  });

  test("leads to the console where nothing was pushed yet, and the console pushes, pops and acks", async () => {
    const fresh = await startSystem();
    const { page, complaints, close } = await openPage(browser);
    try {
      await page.goto(fresh.broker.url);
      await page.getByText("Nothing was pushed yet").waitFor();
      await checkAccessibility(page, "the first page");
      await page.locator("main").getByRole("link", { name: "Try it" }).click();
      const step = (name: string) => page.getByRole("region", { name, exact: true });
      const line = await step("curl line of Push").innerText();
      assert.match(line, /^curl 'http:\/\/127\.0\.0\.1:\d+\/api\/v1\/push' -d '\{"items":/);
      await step("Push").getByRole("button", { name: "Push", exact: true }).click();
      await step("Push").getByText("201", { exact: true }).waitFor();
      await step("Pop").getByRole("button", { name: "Pop", exact: true }).click();
      await step("Pop").getByText('"world"').waitFor();
      await step("Ack").getByRole("button", { name: "Ack", exact: true }).click();
      await step("Ack").getByText('"success"').waitFor();
      const { json } = await fresh.client.request("GET", "/api/v1/resources/queues/demo");
      assert.deepEqual([json.totals.total, json.totals.completed], [1, 1]);
      assert.deepEqual(complaints(), []);
    } finally {
      await close();
      await fresh.stop();
    }
  });
});

/** Somebody pushes and consumes all the time. */
async function work({ client }: System, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      await client.push(
        Array.from({ length: 10 }, (_, n) => ({ queue: "busy", partition: `lane-${n}`, payload: { n } })),
      );
      const { messages } = await client.pop("busy", { batch: 50, partitions: 10, wait: true, timeout: 100 });
      if (messages.length > 0) await client.ackMessages(messages);
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }
}
