/// <reference lib="dom" />
import { describe, expect } from "bun:test";
import { groupOf, type Person } from "@parley/testkit/client.ts";
import { runMain } from "@parley/testkit/server.ts";
import type { Locator, Page } from "playwright-core";
import { expectNoViolations } from "./axe.ts";
import { sendFiles } from "./files.ts";
import { startProxy } from "./proxy.ts";
import { goBack, hasFocus, PHONE, say, sharedHarness, showsBriefly, test } from "./support.ts";

const harness = sharedHarness(async (started) => {
  olga = await started.person("olga");
  await operators("add", olga);
});
let olga: Person;

/** Runs `parley operators` on the data of the running server. */
async function operators(change: "add" | "remove", { username }: Person): Promise<void> {
  const { dataDir } = harness().server;
  const { code, stderr } = await runMain(["operators", change, username], { PARLEY_DATA: dataDir });
  if (code !== 0) throw new Error(stderr);
}

const rowOf = (page: Page, { username }: Person) =>
  page.getByRole("listitem").filter({ hasText: `@${username}` });

/** Chooses a command in the menu of an account. */
async function choose(page: Page, row: Locator, command: string): Promise<void> {
  await row.getByRole("button", { name: "More for" }).click();
  await page.getByRole("menuitem", { name: command }).click();
}

describe("accounts", () => {
  test("an operator finds an account, suspends it and restores it", async () => {
    const ada = await harness().person("ada");
    await using theirs = await harness().visit(ada);
    await theirs.page.getByRole("button", { name: "Menu", exact: true }).waitFor();
    await using visit = await harness().visit(olga, { path: "/operate/accounts" });
    const { page } = visit;
    await page.getByLabel("Find accounts").fill(`@${ada.username}`);
    const row = rowOf(page, ada);
    await row.getByRole("button", { name: "Suspend" }).click();
    const question = page.getByRole("dialog", { name: `Suspend ${ada.account.display_name}?` });
    await question.getByRole("button", { name: "Cancel" }).click();
    expect(await row.getByText("suspended", { exact: true }).count()).toBe(0);

    await row.getByRole("button", { name: "Suspend" }).click();
    const told = page.getByRole("status").getByText(`@${ada.username} is suspended.`);
    await showsBriefly(told, () => question.getByRole("button", { name: "Suspend" }).click());
    await row.getByText("suspended", { exact: true }).waitFor();
    await theirs.page.getByRole("button", { name: "Create account" }).waitFor();

    await page.reload();
    await page.getByText("Suspended", { exact: true }).click();
    await row.getByRole("button", { name: "Restore" }).click();
    const answer = page.getByRole("dialog", { name: `Restore ${ada.account.display_name}?` });
    await answer.getByRole("button", { name: "Restore" }).click();
    await page.getByRole("status").getByText(`@${ada.username} is restored.`).waitFor();
    const { items } = await olga.call("getAuditLog", { account: ada.username });
    expect(items.slice(0, 2).map(({ action }) => action)).toEqual([
      "account_restored",
      "account_suspended",
    ]);
    expect(visit.problems()).toEqual([]);
  });

  test("an account is erased only after its username was typed", async () => {
    const jack = await harness().person("jack");
    await using visit = await harness().visit(olga, {
      path: `/operate/accounts#query=${jack.username}`,
    });
    const { page } = visit;
    const row = rowOf(page, jack);
    await choose(page, row, "Erase");
    const dialog = page.getByRole("dialog", { name: `Erase ${jack.account.display_name}?` });
    await dialog.waitFor();
    await expectNoViolations(page);
    await dialog.getByRole("button", { name: "Erase" }).click();
    await dialog.getByRole("alert").waitFor();
    await dialog.getByText("Delete messages", { exact: true }).click();
    await dialog.getByLabel(`Type ${jack.username} to confirm`).fill(jack.username);
    await dialog.getByRole("button", { name: "Erase" }).click();
    await row.waitFor({ state: "detached" });
    expect((await olga.call("getAccounts", { query: jack.username })).items).toEqual([]);
    const { items } = await olga.call("getAuditLog", { action: "account_erased" });
    expect(items[0]).toMatchObject({ account: jack.username, operator: olga.username });
    expect(visit.problems()).toEqual([]);
  });

  test("the filter is in the address, and a search without a match says so", async () => {
    const bob = await harness().person("bob");
    await olga.call("suspendAccount", { username: bob.username });
    const path = `/operate/accounts#query=${bob.username}&show=active`;
    await using visit = await harness().visit(olga, { path });
    const { page } = visit;
    await page.getByText(`No account matches «${bob.username}».`).waitFor();
    await page.getByText("Suspended", { exact: true }).click();
    await rowOf(page, bob).getByRole("button", { name: "Restore" }).waitFor();
    expect(new URL(page.url()).hash).toBe(`#query=${bob.username}&show=suspended`);
    expect(visit.problems()).toEqual([]);
  });

  test("operators cannot be suspended, so there is no button for it", async () => {
    await using visit = await harness().visit(olga, {
      path: `/operate/accounts#query=${olga.username}`,
    });
    const row = rowOf(visit.page, olga);
    await row.getByText("operator", { exact: true }).waitFor();
    expect(await row.getByRole("button").count()).toBe(0);
    expect(visit.problems()).toEqual([]);
  });

  test("long lists have pages", async () => {
    const users = Array.from({ length: 60 }, (_, number) => `many_${number}`);
    await Promise.all(users.map((name) => harness().person(name)));
    await using visit = await harness().visit(olga, { path: "/operate/accounts#query=many" });
    const { page } = visit;
    const rows = page.getByRole("main").getByRole("listitem");
    await rows.nth(49).waitFor();
    expect(await rows.count()).toBe(50);
    await page.getByRole("button", { name: "Show more" }).click();
    await rows.nth(59).waitFor();
    expect(await page.getByRole("button", { name: "Show more" }).count()).toBe(0);
    expect(visit.problems()).toEqual([]);
  });

  test("a suspension works by keyboard, and the focus returns", async () => {
    const carol = await harness().person("carol");
    await using visit = await harness().visit(olga, {
      path: `/operate/accounts#query=${carol.username}`,
    });
    const { page } = visit;
    const button = rowOf(page, carol).getByRole("button", { name: "Suspend" });
    await button.focus();
    await page.keyboard.press("Enter");
    const question = page.getByRole("dialog");
    await question.waitFor();
    expect(await hasFocus(question.getByRole("button", { name: "Cancel" }))).toBe(true);
    await page.keyboard.press("Escape");
    await question.waitFor({ state: "detached" });
    expect(await hasFocus(button)).toBe(true);
    await page.keyboard.press("Enter");
    await question.waitFor();
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await rowOf(page, carol).getByRole("button", { name: "Restore" }).waitFor();
    expect(visit.problems()).toEqual([]);
  });
});

/** A group in which somebody sent an advertisement, which was reported. */
async function reported() {
  const [hugo, iris] = [await harness().person("hugo"), await harness().person("iris")];
  const chat = await groupOf(hugo, iris);
  const before = ["a secret at the start", "one", "two", "three", "four", "five"];
  const texts = [...before, "Buy watches", "six", "seven", "eight", "nine", "ten", "eleven"];
  for (const text of texts) await say(text === "Buy watches" ? iris : hugo, chat, text);
  const { items } = await hugo.call("getChatHistory", { chat_id: chat.id });
  const message_id = items.find(({ content }) => content === "Buy watches")?.id ?? "";
  const reason = `Advertising by ${iris.username}`;
  await hugo.call("reportMessage", { message_id, reason });
  return { hugo, iris, reason };
}

const reportOf = (page: Page, reason: string) =>
  page.getByRole("listitem").filter({ has: page.getByRole("heading", { name: reason }) });

describe("reports", () => {
  test("show the message and five around it, and are resolved with a note", async () => {
    const { hugo, iris, reason } = await reported();
    await using visit = await harness().visit(olga, { path: "/operate/reports" });
    const { page } = visit;
    const card = reportOf(page, reason);
    await card.getByText("Buy watches").waitFor();
    const lines = card.getByRole("listitem");
    expect(await lines.count()).toBe(6);
    expect(await lines.filter({ hasText: "Reported" }).textContent()).toContain("Buy watches");
    expect(await card.textContent()).toContain(`@${hugo.username}`);
    expect(await page.content()).not.toContain("a secret at the start");

    await card.getByRole("button", { name: "Resolve" }).click();
    const dialog = page.getByRole("dialog", { name: "Resolve this report?" });
    await dialog.getByLabel("Note").fill(`Told ${iris.username} to stop.`);
    await expectNoViolations(page);
    await dialog.getByRole("button", { name: "Resolve" }).click();
    await card.getByText(`Told ${iris.username} to stop.`).waitFor();

    await page.reload();
    await page.getByText("You see the reported message").waitFor();
    await page.getByText("Resolved", { exact: true }).click();
    await card.getByText(`Resolved by @${olga.username}`).waitFor();
    expect(await card.getByRole("button").count()).toBe(0);
    expect(visit.problems()).toEqual([]);
  });

  test("name the files of the messages", async () => {
    const [hugo, iris] = [await harness().person("hugo"), await harness().person("iris")];
    const chat = await groupOf(hugo, iris);
    const { id: message_id } = await sendFiles(iris, chat, { "watches.txt": "Buy watches" });
    const reason = `Advertising by ${iris.username}`;
    await hugo.call("reportMessage", { message_id, reason });
    await using visit = await harness().visit(olga, { path: "/operate/reports" });
    const { page } = visit;
    const files = reportOf(page, reason).getByRole("list", { name: "Files" });
    await files.getByText("watches.txt").waitFor();
    await files.getByText("11 bytes").waitFor();
    expect(visit.problems()).toEqual([]);
  });

  test("the sender is suspended from a report", async () => {
    const { iris, reason } = await reported();
    await using visit = await harness().visit(olga, { path: "/operate/reports" });
    const { page } = visit;
    const card = reportOf(page, reason);
    await card.getByRole("button", { name: `Suspend @${iris.username}` }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Suspend" }).click();
    await page.getByRole("status").getByText(`@${iris.username} is suspended.`).waitFor();
    const { items } = await olga.call("getAccounts", { query: iris.username });
    expect(items).toMatchObject([{ suspended_at: expect.any(String) }]);
    expect(visit.problems()).toEqual([]);
  });

  test("a report that somebody else has resolved meanwhile is not resolved again", async () => {
    const { reason } = await reported();
    await using visit = await harness().visit(olga, { path: "/operate/reports" });
    const { page } = visit;
    const card = reportOf(page, reason);
    await card.getByRole("button", { name: "Resolve" }).click();
    const { items } = await olga.call("getReports", { resolved: false });
    const report_id = items.find((report) => report.reason === reason)?.id ?? "";
    await olga.call("resolveReport", { report_id });
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("button", { name: "Resolve" }).click();
    await dialog.getByRole("alert").getByText("resolved already").waitFor();
    expect(visit.problems()).toEqual([]);
  });
});

describe("the audit log", () => {
  test("says in sentences what happened to an account, and filters", async () => {
    const dora = await harness().person("dora");
    await dora.call("setAgentKey", { provider: "claude", api_key: "sandbox-0123456789" });
    await olga.call("suspendAccount", { username: dora.username });
    const path = `/operate/audit#account=${dora.username}`;
    await using visit = await harness().visit(olga, { path });
    const { page } = visit;
    const entries = page.getByRole("main").getByRole("listitem");
    await entries.nth(2).waitFor();
    const sentences = (await entries.locator("p:first-child").allTextContents()).map((each) =>
      each.trim(),
    );
    expect(sentences).toEqual([
      `@${dora.username} was suspended by @${olga.username}`,
      `@${dora.username} stored a key for claude`,
      `@${dora.username} created an account`,
    ]);

    await page.getByLabel("What happened").selectOption({ label: "Sign up" });
    await page.getByRole("button", { name: "Show", exact: true }).click();
    await page.waitForFunction(() => document.querySelectorAll("main ol > li").length === 1);
    expect(page.url()).toContain("action=sign_up");
    await page.getByText("Details").click();
    await page.getByText("session_id").waitFor();

    await page.getByLabel("Since").fill("2999-01-01");
    await page.getByRole("button", { name: "Show", exact: true }).click();
    await page.getByText("No entry matches.").waitFor();
    await page.getByRole("button", { name: "Clear the filter" }).click();
    await entries.first().waitFor();
    expect(new URL(page.url()).hash).toBe("");
    await goBack(page);
    await page.getByText("No entry matches.").waitFor();
    expect(visit.problems()).toEqual([]);
  });

  test("an account leads to its entries, and its entries have pages", async () => {
    const erin = await harness().person("erin");
    for (let times = 0; times < 51; times++) {
      await erin.call("setAgentKey", { provider: "gpt", api_key: "sandbox-0123456789" });
    }
    await using visit = await harness().visit(olga, {
      path: `/operate/accounts#query=${erin.username}`,
    });
    const { page } = visit;
    await rowOf(page, erin).getByRole("link", { name: "Audit log" }).click();
    const entries = page.getByRole("main").getByRole("listitem");
    await entries.nth(49).waitFor();
    await page.getByRole("button", { name: "Show more" }).click();
    await page.getByText("created an account").waitFor();
    expect(await entries.count()).toBe(52);
    expect(visit.problems()).toEqual([]);
  });

  test("a name that cannot be one is refused beside its field", async () => {
    await using visit = await harness().visit(olga, { path: "/operate/audit" });
    const { page } = visit;
    const field = page.getByLabel("Account");
    await field.fill("not a name");
    await page.getByRole("button", { name: "Show", exact: true }).click();
    await page.getByRole("alert").getByText("A whole username").waitFor();
    expect(await hasFocus(field)).toBe(true);
    expect(await field.getAttribute("aria-invalid")).toBe("true");
    expect(visit.problems()).toEqual([]);
  });
});

describe("the state of the service", () => {
  test("shows figures and the version, and refreshes", async () => {
    await using visit = await harness().visit(olga, { path: "/operate" });
    const { page } = visit;
    const { version } = await olga.call("getStatistics");
    await page.getByText(`Parley ${version}`).waitFor();
    const conversations = page.locator("div:has(> dt:text-is('Conversations')) dd");
    const before = Number(await conversations.textContent());
    await olga.call("startChat", { usernames: [], title: "One more" });
    await page.getByRole("button", { name: "Refresh" }).click();
    await page.waitForFunction(
      ({ least }) => {
        const term = [...document.querySelectorAll("dt")].find(
          ({ textContent }) => textContent === "Conversations",
        );
        return Number(term?.nextElementSibling?.textContent) > least;
      },
      { least: before },
    );
    expect(visit.problems()).toEqual([]);
  });
});

test("without a connection a page waits, and loads when the connection is back", async () => {
  using proxy = startProxy(harness().url);
  const path = `/operate/accounts#query=${olga.username}`;
  const options = { path, url: proxy.url, networkFails: true };
  await using visit = await harness().visit(olga, options);
  const { page } = visit;
  await rowOf(page, olga).waitFor();
  proxy.disconnect();
  await page.getByText("The server cannot be reached").waitFor();
  const tabs = page.getByRole("navigation", { name: "Operator pages" });
  await tabs.getByRole("link", { name: "Audit log" }).click();
  await page.getByLabel("What happened").waitFor();
  expect(await page.locator("main [aria-busy=true]").count()).toBeGreaterThan(0);
  expect(await page.getByText("Nothing has happened yet.").count()).toBe(0);
  proxy.reconnect();
  await page.getByText("Details").first().waitFor();
  expect(visit.problems()).toEqual([]);
});

describe("access", () => {
  test("others find nothing at the address, and load nothing of the pages", async () => {
    const frank = await harness().person("frank");
    await using visit = await harness().visit(frank, { serviceWorkers: "allow" });
    const { page } = visit;
    const loaded: string[] = [];
    page.context().on("request", (request) => loaded.push(request.url()));
    await page.reload();
    await page.getByRole("button", { name: "Menu", exact: true }).click();
    await page.getByRole("menuitem", { name: "My agents" }).waitFor();
    expect(await page.getByRole("menuitem", { name: "Operator pages" }).count()).toBe(0);
    await page.goto(`${harness().url}/operate/accounts`);
    await page.getByRole("heading", { name: "There is nothing here" }).waitFor();
    await page.evaluate(() => navigator.serviceWorker.ready.then(() => undefined));
    expect(loaded.filter((url) => url.includes("OperatePage"))).toEqual([]);
    expect(visit.problems()).toEqual([]);
  });

  test("an operator opens the pages from the menu and from the switcher", async () => {
    await using visit = await harness().visit(olga);
    const { page } = visit;
    await page.getByRole("button", { name: "Menu", exact: true }).click();
    await page.getByRole("menuitem", { name: "Operator pages" }).click();
    await page.getByRole("heading", { name: "State of the service" }).waitFor();
    await page.getByRole("link", { name: "Accounts" }).click();
    await page.getByLabel("Find accounts").waitFor();
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: /^Search/ }).fill("audit");
    await page.getByRole("option", { name: "Operator pages" }).click();
    await page.getByRole("heading", { name: "State of the service" }).waitFor();
    expect(visit.problems()).toEqual([]);
  });

  test("somebody who is no longer an operator is told so", async () => {
    const greta = await harness().person("greta");
    await operators("add", greta);
    await using visit = await harness().visit(greta, { path: "/operate" });
    const { page } = visit;
    await page.getByRole("button", { name: "Refresh" }).waitFor();
    await operators("remove", greta);
    await page.getByRole("button", { name: "Refresh" }).click();
    await page.getByRole("heading", { name: "You are no longer an operator" }).waitFor();
    await expectNoViolations(page);
    await page.getByRole("button", { name: "Back to conversations" }).click();
    await page.getByRole("button", { name: "Menu", exact: true }).click();
    await page.getByRole("menuitem", { name: "My agents" }).waitFor();
    expect(await page.getByRole("menuitem", { name: "Operator pages" }).count()).toBe(0);
    expect(visit.problems()).toEqual([]);
  });
});

describe.each([
  ["a wide screen", {}],
  ["a phone", PHONE],
] as const)("on %s", (_, device) => {
  for (const [path, ready] of [
    ["/operate", (page: Page) => page.getByText("Active in 30 days")],
    ["/operate/accounts", (page: Page) => page.getByRole("button", { name: "Suspend" }).first()],
    ["/operate/reports", (page: Page) => page.getByText("Buy watches").first()],
    ["/operate/audit", (page: Page) => page.getByText("Details").first()],
  ] as const) {
    test(`axe finds no violations at ${path}, and nothing overflows`, async () => {
      await reported();
      await using visit = await harness().visit(olga, { path, ...device });
      const { page } = visit;
      await ready(page).waitFor();
      await expectNoViolations(page);
      const wide = await page.evaluate(() =>
        [...document.querySelectorAll<HTMLElement>("main *")]
          .filter((element) => !element.closest(".sr-only"))
          .filter((element) => element.getBoundingClientRect().right > innerWidth + 1)
          .map((element) => element.outerHTML.slice(0, 120)),
      );
      expect(wide).toEqual([]);
      expect(visit.problems()).toEqual([]);
    });
  }
});
