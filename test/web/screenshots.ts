/**
 * Makes the pictures in docs/screenshots anew: every view, light and dark, with a broker under load.
 *
 *   npm run screenshots
 *
 * The database is the built-in one in a temporary folder, or the one that QUEEN_TEST_DATABASE_URL names.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import { startBrokerProcess } from "../support/broker.ts";
import { noBrowser, openPage, startBrowser } from "../support/browser.ts";
import { HttpClient } from "../support/http.ts";
import { fill, viewsOf } from "./views.ts";

const FOLDER = fileURLToPath(new URL("../../../docs/screenshots/", import.meta.url));
const BYTES_MAX = 150_000;
// So that charts have a few minutes to show.
const LOAD_MS = Number(process.env.SCREENSHOT_LOAD_SECONDS ?? 180) * 1000;
const SHOWN_MS = 2_500;

if (noBrowser) throw new Error(noBrowser);
const data = mkdtempSync(join(tmpdir(), "queen-screenshots-"));
const databaseUrl = process.env.QUEEN_TEST_DATABASE_URL ?? "";
const broker = await startBrokerProcess({ databaseUrl, env: { QUEEN_DATA_DIR: data, LOG_LEVEL: "error" } });
const browser = await startBrowser();
const stop = new AbortController();
try {
  const client = new HttpClient(broker.url);
  const views = viewsOf(await fill(client));
  void work(client, stop.signal);
  await sleep(LOAD_MS);
  mkdirSync(FOLDER, { recursive: true });
  for (const colorScheme of ["light", "dark"] as const) {
    const { page, close } = await openPage(browser, {
      colorScheme,
      viewport: { width: 1200, height: 760 },
    });
    for (const { name, address, shows } of views) {
      await page.goto(`${broker.url}/#/${address}`);
      await page.locator("main").getByText(shows).or(page.getByLabel(shows)).first().waitFor();
      await save(page, `${name}-${colorScheme}`);
    }
    await close();
  }
  const { page, close } = await openPage(browser, { viewport: { width: 390, height: 844 } });
  await page.goto(`${broker.url}/#/overview`);
  await page.getByText("Furthest behind").waitFor();
  await save(page, "overview-phone");
  await close();
} finally {
  stop.abort();
  await browser.close();
  await broker.stop();
  rmSync(data, { recursive: true, force: true });
}
process.exit();

/** A picture of what fits on a screen: the views scroll. */
async function save(page: Page, name: string): Promise<void> {
  await page.waitForTimeout(SHOWN_MS);
  const png = await page.screenshot();
  if (png.length > BYTES_MAX) throw new Error(`${name}.png has ${png.length} bytes, more than ${BYTES_MAX}`);
  writeFileSync(join(FOLDER, `${name}.png`), png);
  console.log(`${name}.png ${Math.round(png.length / 1024)} KB`);
}

/** A shop: orders come in waves, two groups consume them, some fail. */
async function work(client: HttpClient, signal: AbortSignal): Promise<void> {
  const queues = ["shop.orders", "shop.invoices", "search.index", "billing.events"];
  for (let n = 0; !signal.aborted; n++) {
    try {
      const many = 6 + Math.round(4 * Math.sin(n / 40));
      await client.push(
        queues.flatMap((queue, at) =>
          Array.from({ length: Math.ceil(many / (at + 1)) }, (_, k) => ({
            queue,
            partition: `customer-${((n * 7 + k * 3) % 40) + 1}`,
            transactionId: `${at}-${n}-${k}`,
            payload: { order: n, total: k * 9.9, customer: { name: "Ada Lovelace", tags: ["eu"] } },
          })),
        ),
      );
      for (const [at, queue] of queues.entries()) {
        const consumerGroup = ["billing", "ledger", "indexer", "accounts"][at]!;
        const { messages } = await client.pop(queue, { batch: 14, partitions: 12, consumerGroup });
        const failing = messages.filter((_, place) => (n + place) % 97 === 0);
        const fine = messages.filter((message) => !failing.includes(message));
        if (fine.length > 0) await client.ackMessages(fine);
        if (failing.length > 0)
          await client.ackMessages(failing, "failed", "timeout after 5000 ms calling payments");
      }
      await sleep(150);
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }
}
