/** Signing in, what a role sees, and the page below the base path of a proxy. */
import assert from "node:assert/strict";
import { createServer, request as forward, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";
import type { Browser } from "playwright-core";
import { checkAccessibility, noBrowser, openPage, startBrowser } from "../support/browser.ts";
import { type System, startSystem } from "../support/system.ts";
import { fill, viewsOf } from "./views.ts";

const ADMIN_KEY = "an-administrators-key-for-tests-only";

describe("the web page with authentication", { skip: noBrowser }, () => {
  let system: System;
  let browser: Browser;
  let proxy: Server;
  let below: string;
  const admin = { headers: { authorization: `Bearer ${ADMIN_KEY}` } };
  const keyFor = async (role: string, queues: string[] | null = null): Promise<{ key: string; id: string }> =>
    (
      await system.client.request(
        "POST",
        "/api/v1/system/keys",
        { name: `a ${role} of tests`, role, queues },
        admin,
      )
    ).json;

  before(async () => {
    system = await startSystem({ QUEEN_ADMIN_KEY: ADMIN_KEY });
    browser = await startBrowser();
    proxy = await stripping("/tools/queen", system.broker.url);
    below = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/tools/queen/`;
  });
  after(async () => {
    await browser?.close();
    proxy?.closeAllConnections();
    proxy?.close();
    await system?.stop();
  });

  const signIn = async (credential: string, url = `${system.broker.url}/`) => {
    const watched = await openPage(browser);
    await watched.page.goto(url);
    await watched.page.getByRole("radio", { name: "Token or key" }).check();
    await watched.page.getByLabel("Token or API key").fill(credential);
    await watched.page.getByRole("button", { name: "Sign in" }).click();
    return watched;
  };

  test("asks who it is, refuses what is wrong, and keeps the session where scripts cannot read it", async () => {
    const { page, close } = await signIn("nonsense");
    await page.getByRole("alert").waitFor();
    assert.match(await page.getByRole("alert").innerText(), /Invalid API key/);
    await checkAccessibility(page, "the sign-in");
    await page.getByLabel("Token or API key").fill(ADMIN_KEY);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("the administrator's key").waitFor();
    assert.equal(await page.evaluate("document.cookie"), "");
    const [cookie] = await page.context().cookies(`${system.broker.url}/api/v1/session`);
    assert.deepEqual([cookie?.httpOnly, cookie?.sameSite, cookie?.path], [true, "Strict", "/api/v1"]);
    await page.reload();
    await page.getByText("the administrator's key").waitFor();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("Token or API key").waitFor();
    await page.reload();
    await page.getByLabel("Token or API key").waitFor();
    await close();
  });

  test("a user signs in by name and password, with the keyboard alone, and is out when the password changes", async () => {
    const users = "/api/v1/system/users";
    const password = "a-password-of-tests";
    const body = { name: "ada", password, role: "read-only" };
    assert.equal((await system.client.request("POST", users, body, admin)).status, 201);
    const { page, complaints, close } = await openPage(browser);
    await page.goto(`${system.broker.url}/#/queues`);
    await page.getByLabel("User", { exact: true }).waitFor();
    await checkAccessibility(page, "the sign-in by password");
    assert.deepEqual(complaints(), []);
    await page.keyboard.type("ada");
    await page.keyboard.press("Tab");
    await page.keyboard.type("not-the-password");
    await page.keyboard.press("Enter");
    await page.getByRole("alert").waitFor();
    assert.match(await page.getByRole("alert").innerText(), /Wrong user or password/);
    complaints(); // the refusal
    await page.keyboard.press("ControlOrMeta+a");
    await page.keyboard.type(password);
    await page.keyboard.press("Enter");
    await page.getByText("user ada").waitFor();
    await page.getByRole("heading", { name: "Queues", level: 1 }).waitFor();
    assert.equal(await page.getByRole("button", { name: "New queue" }).count(), 0);
    assert.equal(await page.evaluate("document.cookie"), "");
    await page.getByText("Live", { exact: true }).waitFor();
    assert.deepEqual(complaints(), []);
    await system.client.request("POST", `${users}/ada/password`, { password: "another-password" }, admin);
    await page.getByLabel("User", { exact: true }).waitFor();
    await close();
  });

  test("shows a read-only role every view, and no button that it may not press", async () => {
    const anonymous = system.client;
    const filling = new Proxy(anonymous, {
      get: (client, name) =>
        name === "request"
          ? (method: string, path: string, body?: unknown) => client.request(method, path, body, admin)
          : Reflect.get(client, name),
    });
    const views = viewsOf(await fill(filling)).filter(
      ({ name }) => !["maintenance", "try-it"].includes(name),
    );
    const { key } = await keyFor("read-only");
    const { page, complaints, close } = await signIn(key);
    await page.getByText("Furthest behind").waitFor();
    assert.deepEqual(await page.getByRole("navigation", { name: "Main" }).getByRole("link").allInnerTexts(), [
      "Overview",
      "Queues",
      "Messages",
      "Consumer groups",
      "Dead letters",
      "Traces",
      "System",
    ]);
    complaints();
    for (const { name, address, shows } of views) {
      if (name === "system") continue; // its last part is for administrators
      await page.goto(`${system.broker.url}/#/${address}`);
      await page
        .locator("main")
        .getByText(shows, { exact: false })
        .or(page.locator("main").getByLabel(shows, { exact: false }))
        .first()
        .waitFor();
      const buttons = await page.locator("main").getByRole("button").allInnerTexts();
      const acting = buttons.filter((text) =>
        /new|pause|resume|edit|clear|delete|seek|requeue|purge|retry|push|switch|to dead/i.test(text),
      );
      assert.deepEqual(acting, [], name);
      assert.deepEqual(complaints(), [], name);
    }
    await close();
  });

  test("a revoked key ends what is open", async () => {
    const { key, id } = await keyFor("read-only");
    const { page, close } = await signIn(key);
    await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor();
    await page.getByText("Live", { exact: true }).waitFor();
    await system.client.request("DELETE", `/api/v1/system/keys/${id}`, undefined, admin);
    await page.getByLabel("Token or API key").waitFor();
    await close();
  });

  test("a key for some queues opens them by name", async () => {
    const { key } = await keyFor("read-only", ["shop.*"]);
    const { page, close } = await signIn(key, `${system.broker.url}/#/queues`);
    await page.getByLabel("Queue, one of shop.*").fill("shop.orders");
    await page.getByRole("button", { name: "Open" }).click();
    await page.getByRole("heading", { name: "shop.orders", level: 1 }).waitFor();
    await page.getByText("customer-12").waitFor();
    await close();
  });

  test("works below the base path of a proxy, session and stream included", async () => {
    const { page, complaints, close } = await signIn(ADMIN_KEY, below);
    await page.getByText("Live", { exact: true }).waitFor();
    complaints(); // before the sign-in
    await page.getByRole("link", { name: "Queues", exact: true }).click();
    await page.getByRole("link", { name: "shop.orders" }).click();
    await page.getByText("customer-12").waitFor();
    await page.goto(`${below}#/try`);
    await page.getByText(`curl -H "Authorization: Bearer $KEY" '${below}api/v1/push'`).waitFor();
    await page
      .getByRole("region", { name: "Push", exact: true })
      .getByRole("button", { name: "Push", exact: true })
      .click();
    await page.getByText("201", { exact: true }).waitFor();
    assert.deepEqual(complaints(), []);
    await close();
  });
});

/** A proxy that serves a broker below a path, which the broker does not know. */
async function stripping(path: string, url: string): Promise<Server> {
  const server = createServer((incoming, response) => {
    if (!incoming.url!.startsWith(`${path}/`)) {
      response.writeHead(404).end();
      return;
    }
    const { method, headers } = incoming;
    const request = forward(
      new URL(incoming.url!.slice(path.length), url),
      { method: method!, headers },
      (answer) => {
        response.writeHead(answer.statusCode!, answer.headers);
        answer.pipe(response);
      },
    );
    request.on("error", () => response.destroy());
    response.on("close", () => request.destroy());
    incoming.pipe(request);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}
