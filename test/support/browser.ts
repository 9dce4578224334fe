/**
 * A browser for tests of the web page: Debian's Chromium, steered by playwright-core. A page complains about
 * everything that its console has: errors, warnings, what the content security policy forbids.
 */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";

const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
/** How long a page may take to show something on a busy machine. */
export const SHOWN_MS_MAX = 60_000;

/** Why tests of the page cannot run; false: they can. */
export const noBrowser: string | false = existsSync(CHROMIUM)
  ? false
  : `there is no ${CHROMIUM}: install chromium, or name one in CHROMIUM`;

export const startBrowser = (): Promise<Browser> =>
  chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-dev-shm-usage"] });

export interface WatchedPage {
  readonly page: Page;
  /** What the console complained about since the last call. */
  complaints(): string[];
  close(): Promise<void>;
}

export async function openPage(browser: Browser, options: BrowserContextOptions = {}): Promise<WatchedPage> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  context.setDefaultTimeout(SHOWN_MS_MAX);
  const page = await context.newPage();
  let complaints: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(error.message));
  return {
    page,
    complaints: () => {
      const found = complaints;
      complaints = [];
      return found;
    },
    close: () => context.close(),
  };
}

interface AxeResult {
  readonly violations: readonly {
    readonly id: string;
    readonly help: string;
    readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
  }[];
  readonly passes: readonly unknown[];
}

/** Fails where axe finds something wrong with what is shown. */
export async function checkAccessibility(page: Page, what: string): Promise<void> {
  await page.evaluate(AXE);
  const { violations, passes } = (await page.evaluate("axe.run(document)")) as AxeResult;
  const found = violations.map(
    ({ id, help, nodes }) =>
      `${id}: ${help}\n${nodes.map((each) => `${each.html}\n${each.failureSummary}`).join("\n")}`,
  );
  assert.deepEqual(found, [], `${what} is not accessible`);
  assert.ok(passes.length > 5, `${what}: axe looked at ${passes.length} rules only`);
}
