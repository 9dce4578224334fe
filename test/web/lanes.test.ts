/** A queue of 100,000 lanes is shown, sorted, searched and paged; the times are printed, not judged. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Browser } from "playwright-core";
import { noBrowser, openPage, startBrowser } from "../support/browser.ts";
import { type System, startSystem } from "../support/system.ts";

const LANES = 100_000;

describe("100,000 lanes", { skip: noBrowser }, () => {
  let system: System;
  let browser: Browser;
  before(async () => {
    system = await startSystem();
    browser = await startBrowser();
    await system.client.push([{ queue: "wide", partition: "lane-0", payload: 0 }]);
    const client = await system.database.client();
    // One message each, the older the higher the number; lane-77777 has three.
    await client.query(
      `with made as (
         insert into queen.partitions (queue_id, name, next_offset, last_at, created_at)
         select p.queue_id, 'lane-' || n, case when n = 77777 then 3 else 1 end,
                now() - n * interval '1 second', now() - interval '10 days'
           from queen.partitions p, generate_series(1, $1 - 1) as n where p.name = 'lane-0'
         returning id, next_offset, last_at)
       insert into queen.segments (partition_id, first_offset, count, created_at, keys, ends, body)
       select m.id, o, 1, m.last_at, s.keys, s.ends, s.body
         from made m cross join lateral generate_series(0, m.next_offset - 1) as o,
              (select * from queen.segments limit 1) s`,
      [LANES],
    );
    await client.query(
      `insert into queen.dead_letters (queue_id, partition_id, partition_name, group_id, consumer_group, message_offset,
                                       transaction_id, fragment, error_message, retry_count, created_at)
       select p.queue_id, p.id, p.name, 1, 'g', 0, 't', '', 'e', 0, now() from queen.partitions p where p.name = 'lane-4711'`,
    );
    await client.query("analyze");
  });
  after(async () => {
    await browser?.close();
    await system?.stop();
  });

  test("are shown, sorted by depth, age, trouble and name, searched and paged", async () => {
    const { page, complaints, close } = await openPage(browser);
    const times: string[] = [];
    const timed = async (what: string, work: () => Promise<void>): Promise<void> => {
      const startedMs = performance.now();
      await work();
      times.push(`${what} ${Math.round(performance.now() - startedMs)} ms`);
    };
    const first = (name: string) =>
      page
        .getByRole("region", { name: "Lanes", exact: true })
        .locator("tbody tr")
        .first()
        .getByText(name, { exact: true })
        .waitFor();
    const sortBy = (name: string) => page.getByRole("button", { name, exact: true }).click();

    await timed("to show", async () => {
      await page.goto(`${system.broker.url}/#/queues/wide`);
      await first("lane-77777");
    });
    await page.getByText(`${LANES.toLocaleString("en")} lanes`).waitFor();
    await timed("to sort by age", async () => {
      await sortBy("Oldest waits");
      await first(`lane-${LANES - 1}`);
    });
    await timed("to sort by trouble", async () => {
      await sortBy("Trouble");
      await first("lane-4711");
    });
    await timed("to sort by name", async () => {
      await sortBy("Lane");
      await first("lane-0");
    });
    await timed("to go to the last page", async () => {
      await page.getByRole("button", { name: "Last", exact: true }).click();
      await page.getByText("lane-99999", { exact: true }).waitFor();
    });
    await timed("to search", async () => {
      await page.getByLabel("Search lanes").fill("lane-4242");
      await first("lane-4242");
    });
    // The address has all of it: whoever gets the link sees the same.
    const address = page.url();
    await page.reload();
    await first("lane-4242");
    assert.equal(page.url(), address);
    const rows = page.getByRole("region", { name: "Lanes", exact: true }).locator("tbody tr");
    assert.equal(await rows.count(), 11); // lane-4242, lane-42420 …
    assert.deepEqual(complaints(), []);
    console.log(`100,000 lanes: ${times.join(", ")}`);
    await close();
  });
});
