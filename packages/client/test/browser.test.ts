/** The client in a browser, as plain modules: also there a worker renews leases while the page is blocked. */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { startTestQueen, type TestQueen } from "@queen/testing";
import { chromium } from "playwright-core";

const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
const skip = existsSync(CHROMIUM) ? false : "there is no Chromium; CHROMIUM says where one is";
const SOURCE = new URL("../src/", import.meta.url);

let system: TestQueen | undefined;
const pages = createServer((request, response) => {
  const file = fileURLToPath(new URL(`.${request.url}`, SOURCE));
  if (request.url === "/") response.writeHead(200, { "content-type": "text/html" }).end("<!doctype html>");
  else if (!existsSync(file)) response.writeHead(404).end();
  else response.writeHead(200, { "content-type": "text/javascript" }).end(readFileSync(file));
});
before(async () => {
  if (skip) return;
  system = await startTestQueen({ env: { QUEEN_LEASE_SWEEP_INTERVAL_MS: "200" } });
  await new Promise<void>((resolve) => pages.listen(0, "127.0.0.1", resolve));
});
after(async () => {
  pages.close();
  await system?.stop();
});

// Runs in the page, where the modules have no types.
const PROGRAM = `async (url) => {
  const { Queen } = await import("/index.js");
  const queen = new Queen(url);
  const orders = queen.queue("orders").config({ leaseTime: 2, retryDelay: 0, retryLimit: 5 });
  await orders.create();
  const [{ status }] = await orders.partition("a").push({ data: { n: 1 } });
  let deliveries = 0;
  const summary = await orders.each().limit(1).consume(() => {
    deliveries++;
    for (const endMillis = Date.now() + 3500; Date.now() < endMillis; );
  });
  const left = (await orders.pop()).length;
  await queen.close();
  return { status, deliveries, left, ...summary };
}`;

test("a page pushes and consumes, and keeps its lease while it is blocked", { skip }, async () => {
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
  try {
    const page = await browser.newPage();
    const workers: string[] = [];
    page.on("worker", (worker) => workers.push(worker.url()));
    await page.goto(`http://127.0.0.1:${(pages.address() as AddressInfo).port}/`);
    const result = await page.evaluate(`(${PROGRAM})(${JSON.stringify(system!.url)})`);
    assert.deepEqual(result, { status: "queued", deliveries: 1, left: 0, completed: 1, failed: 0 });
    assert.match(workers.join(), /lease-worker\.js$/);
  } finally {
    await browser.close();
  }
});
