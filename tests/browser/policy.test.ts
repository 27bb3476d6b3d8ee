import { afterAll, beforeAll, expect } from "bun:test";
import type { PolicyOverrides } from "@parley/protocol";
import { Backend, serviceKeySetting } from "@parley/testkit/backend.ts";
import { Person } from "@parley/testkit/client.ts";
import { noRates, startServer, type TestServer } from "@parley/testkit/server.ts";
import type { Browser, Page } from "playwright-core";
import { composer, launch, test, visit } from "./support.ts";
import { openWindows } from "./windows.ts";

const NOTHING: PolicyOverrides = {
  directory: "none",
  start_chats: "none",
  rename: false,
  agents: false,
  files: false,
  hooks: false,
  delete_account: false,
};

let server: TestServer;
let browser: Browser;
let openWindow: ReturnType<typeof openWindows>;
beforeAll(async () => {
  const settings = { ...noRates, ...serviceKeySetting() };
  [server, browser] = await Promise.all([startServer(settings), launch()]);
  openWindow = openWindows(browser);
});
afterAll(async () => {
  await browser.close();
  await server[Symbol.asyncDispose]();
});

const setPolicy = (external_id: string, policy: PolicyOverrides) =>
  new Backend(server.url).call("upsertUsers", { users: [{ external_id, policy }] });

/** A user of a product in a group with others. */
async function member(external_id: string, policy: PolicyOverrides) {
  const backend = new Backend(server.url);
  const display_name = `${external_id} Lovelace`;
  const other = `other of ${external_id}`;
  const users = [{ external_id, display_name, policy }, { external_id: other }];
  await backend.call("upsertUsers", { users });
  const { access_token, account } = await backend.call("issueToken", { external_id });
  const members = [`id:${external_id}`, `id:${other}`];
  const chats = [{ external_id, title: "Order 17", members }];
  const [item] = (await backend.call("upsertChats", { chats })).items;
  return { person: new Person(server.url, access_token, account), chat: item?.chat.id ?? "" };
}

const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });

test("what a policy forbids is not offered", async () => {
  const { person, chat } = await member("Ada", NOTHING);
  await using opened = await visit(openWindow, server.url, person, { path: `/c/${chat}` });
  const { page } = opened;
  await composer(page).waitFor();
  await button(page, "New conversation").waitFor({ state: "detached" });
  for (const name of ["Attach files", "New chat with an agent"]) {
    expect(await button(page, name).count()).toBe(0);
  }

  await page.goto(`${server.url}/settings`);
  await page.getByText("@ada_lovelace").first().waitFor();
  await page.getByLabel("Your name").waitFor({ state: "detached" });
  const pages = page.getByRole("navigation", { name: "Settings" });
  await pages.getByRole("link", { name: "Tool servers" }).waitFor({ state: "detached" });
  await pages.getByRole("link", { name: "Your data" }).click();
  await page.getByRole("heading", { name: "Your data" }).waitFor();
  expect(await button(page, "Delete my account").count()).toBe(0);

  await page.goto(`${server.url}/agents`);
  await page.getByRole("heading", { name: "Usage" }).first().waitFor();
  await button(page, "New agent").waitFor({ state: "detached" });
  for (const name of ["Edit", "Open conversation", "New chat"]) {
    expect(await button(page, name).count()).toBe(0);
  }
  expect(opened.problems()).toEqual([]);
});

test("a policy that changes shows at once in an open page", async () => {
  const { person, chat } = await member("Grace", NOTHING);
  await using opened = await visit(openWindow, server.url, person, { path: `/c/${chat}` });
  const { page } = opened;
  await composer(page).waitFor();
  await button(page, "Attach files").waitFor({ state: "detached" });
  await setPolicy("Grace", { ...NOTHING, files: true, start_chats: "shared" });
  await button(page, "Attach files").waitFor();
  await button(page, "New conversation").waitFor();
  await setPolicy("Grace", NOTHING);
  await button(page, "Attach files").waitFor({ state: "detached" });
});
