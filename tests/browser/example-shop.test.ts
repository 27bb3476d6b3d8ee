import { expect } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Backend, serviceKeySetting } from "@parley/testkit/backend.ts";
import { freePort } from "@parley/testkit/postgres.ts";
import { collect, startServer, type TestServer } from "@parley/testkit/server.ts";
import { until } from "@parley/testkit/until.ts";
import type { Page } from "playwright-core";
import { launch, test, visit, write } from "./support.ts";
import { openWindows } from "./windows.ts";

const ROOT = join(import.meta.dir, "../..");
const README = readFileSync(join(ROOT, "examples/shop/README.md"), "utf8");
const [START_PARLEY = "", START_SHOP = ""] = [...README.matchAll(/^```sh\n(.*?)^```$/gms)].map(
  ([, commands]) => commands,
);

/** Parley with the settings of the README, for a shop at another address. */
const startParley = (shopUrl: string) =>
  startServer({
    ...Object.fromEntries(
      [...START_PARLEY.matchAll(/(PARLEY_\w+)=(\S+)/g)].map(([, name, value]) => [name, value]),
    ),
    PARLEY_ORIGINS: shopUrl,
    ...serviceKeySetting(),
  });

/** Runs the commands of the README that start the shop. */
async function startShop(parley: TestServer, port: number) {
  const child = Bun.spawn(["bash", "-euc", START_SHOP], {
    cwd: ROOT,
    env: {
      ...process.env,
      PARLEY_DATA: parley.dataDir,
      PARLEY_URL: parley.url,
      PORT: `${port}`,
      no_proxy: "127.0.0.1",
    },
    stdout: "pipe",
    stderr: "pipe",
    // A process group of its own, which can be ended as a whole.
    detached: true,
  });
  const { output, until: printed } = collect(child);
  if ((await printed(/Open (\S+)/)) === null) throw new Error(`the shop ended: ${output()}`);
  return {
    output,
    [Symbol.asyncDispose]: async () => {
      process.kill(-child.pid, "SIGKILL");
      await child.exited;
    },
  };
}

async function signIn(page: Page, name: string, password = `${name}'s password`): Promise<void> {
  await page.getByLabel("E-mail").fill(`${name}@example.com`);
  await page.getByLabel("Password").fill(password);
  await page.getByRole("button", { name: "Sign in" }).click();
}

const line = (page: Page, text: string) =>
  page.getByRole("listitem").filter({ hasText: text }).waitFor();

test("the example shop runs as its README says", async () => {
  expect(START_PARLEY).toContain("PARLEY_ORIGINS=http://127.0.0.1:3000");
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  await using parley = await startParley(url);
  await using shop = await startShop(parley, port);
  await using chromium = await withBrowser();
  const openWindow = openWindows(chromium.browser);
  await using ada = await visit(openWindow, url, null);
  await using grace = await visit(openWindow, url, null);

  await signIn(ada.page, "ada");
  await signIn(grace.page, "grace");
  await ada.page.getByText("You are signed in as Ada.").waitFor();
  await ada.page.getByRole("button", { name: "Ask the seller" }).click();
  await grace.page.getByRole("heading", { name: "Order 1001" }).waitFor();

  await write(ada.page, "When does it arrive?");
  await line(grace.page, "Ada: When does it arrive?");
  await write(grace.page, "Tomorrow. Ask @ada:assistant, too!");
  await line(ada.page, "Grace: Tomorrow.");
  await line(ada.page, "I am the built-in **sandbox**");
  await until(() => shop.output().includes("Webhook: Grace wrote: Tomorrow."), "the webhook");

  // The token ends: the page gets another one from the shop and goes on.
  const requested = ada.page.waitForRequest(`${url}/chat-token`);
  await new Backend(parley.url).call("revokeTokens", { external_id: "user-1" });
  await requested;
  await write(grace.page, "Are you still there?");
  await line(ada.page, "Grace: Are you still there?");
  await write(ada.page, "Yes!");
  await line(grace.page, "Ada: Yes!");

  await ada.page.getByRole("button", { name: "Sign out" }).click();
  await ada.page.getByRole("button", { name: "Sign in" }).waitFor();
  expect([...ada.problems(), ...grace.problems()]).toEqual([]);

  await signIn(ada.page, "ada", "wrong");
  await ada.page.getByText("Wrong address or password.").waitFor();
  const forged = await fetch(`${url}/webhook`, { method: "POST", body: "{}" });
  expect(forged.status).toBe(401);
});

async function withBrowser() {
  const browser = await launch();
  return { browser, [Symbol.asyncDispose]: () => browser.close() };
}
