import { expect } from "bun:test";
import { agentOf, groupOf, outcome, signUp } from "@parley/testkit/client.ts";
import { limits, startServer } from "@parley/testkit/server.ts";
import { until } from "@parley/testkit/until.ts";
import type { Locator, Page } from "playwright-core";
import { expectNoViolations } from "./axe.ts";
import {
  composer,
  giveSandboxKey,
  groupChat,
  hasFocus,
  message,
  nextFrame,
  say,
  sharedHarness,
  test,
  twoPeople,
  untilFocused,
} from "./support.ts";

const harness = sharedHarness();

/** Presses Tab until the element with this name has the focus. */
async function tabTo(page: Page, name: string | RegExp): Promise<void> {
  for (let presses = 0; presses < 60; presses++) {
    await page.keyboard.press("Tab");
    const focused = await page.evaluate(() => {
      const element = document.activeElement as HTMLElement | null;
      const label = element?.getAttribute("aria-label") ?? element?.textContent ?? "";
      const labels = (element as HTMLInputElement | null)?.labels;
      return labels?.[0]?.textContent ?? label;
    });
    if (typeof name === "string" ? focused.trim() === name : name.test(focused)) return;
  }
  throw new Error(`Tab never reached ${name}`);
}

test("sign-up, a first message and a reaction work by keyboard alone", async () => {
  await using visit = await harness().visit();
  const { page } = visit;
  await page.getByRole("heading", { name: "Create your account" }).waitFor();
  await tabTo(page, "Your name");
  await page.keyboard.type("Kay");
  await tabTo(page, "Username");
  await page.keyboard.type("kay");
  await tabTo(page, "Password");
  await page.keyboard.type("correct horse");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Try your agent now" }).waitFor();
  // The form took the focus along.
  expect(await page.evaluate(() => document.activeElement === document.body)).toBe(false);
  await tabTo(page, "Try your agent now");
  await page.keyboard.press("Enter");
  // The composer already has the focus.
  await page.getByText("Say anything").waitFor();
  await page.keyboard.type("buy");
  await page.keyboard.press("Enter");
  await page.getByRole("region", { name: "Buy 10 AAPL" }).waitFor();
  await page.getByRole("button", { name: "Cancel" }).waitFor();

  await page.getByRole("article").last().focus();
  await page.keyboard.press("ArrowUp");
  await tabTo(page, "React");
  await page.keyboard.press("Enter");
  await page.keyboard.type("rocket");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "🚀, 1" }).waitFor();
  expect(visit.problems()).toEqual([]);
});

test("mentions, line breaks, edits and switching conversations work by keyboard alone", async () => {
  const { ada, bob } = await twoPeople(harness());
  await giveSandboxKey(ada);
  const chat = await ada.call("startChat", {
    usernames: [bob.username, agentOf(ada)],
    title: "Keys",
  });
  await groupOf(ada, bob);
  await using visit = await harness().visit(ada);
  const { page } = visit;
  await page.getByRole("heading", { name: "Choose a conversation" }).waitFor();
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox").waitFor();
  await page.keyboard.type("keys");
  await page.getByRole("option", { name: "Keys" }).waitFor();
  await page.keyboard.press("Enter");
  await composer(page).waitFor();

  await page.keyboard.type(`Hello @${bob.username.slice(0, 4)}`);
  await page.getByRole("option", { name: bob.username }).waitFor();
  await page.keyboard.press("Enter");
  await page.keyboard.press("Shift+Enter");
  await page.keyboard.type("and @clau");
  await page.getByRole("option", { name: agentOf(ada) }).waitFor();
  await page.keyboard.press("Tab");
  await page.keyboard.type("hello");
  await page.keyboard.press("Enter");
  await message(page, "I am the built-in sandbox").waitFor();
  const { items } = await ada.call("getChatHistory", { chat_id: chat.id });
  expect(items[0]?.content).toBe(`Hello @${bob.username} \nand @${agentOf(ada)} hello`);

  await page.keyboard.press("ArrowUp");
  await page.getByText("Editing your message").waitFor();
  await page.keyboard.press("Escape");
  await page.getByText("Editing your message").waitFor({ state: "detached" });

  await page.keyboard.press("Alt+ArrowDown");
  await page.getByRole("heading", { name: bob.username }).first().waitFor();
  expect(visit.problems()).toEqual([]);
});

test("the focus returns to the message after a dialog, and Tab can skip the list", async () => {
  const { ada, chat, path } = await groupChat(harness());
  await say(ada, chat, "To be kept");
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  const kept = message(page, "To be kept");
  await kept.focus();
  await tabTo(page, "More");
  await page.keyboard.press("Enter");
  await page.getByRole("menuitem", { name: "Copy text" }).waitFor();
  await page.keyboard.press("End");
  await page.keyboard.press("Enter");
  await page.getByRole("dialog", { name: "Delete for everyone?" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  expect(await hasFocus(kept)).toBe(true);

  await page.getByRole("button", { name: "Members and agents" }).focus();
  await page.keyboard.press("Enter");
  await page.getByText("Leave group").waitFor();
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.getByText("Leave group").waitFor({ state: "detached" });

  await page.reload();
  await composer(page).waitFor();
  await tabTo(page, "Skip the list");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Tab");
  const first = page.getByRole("button", { name: "Members and agents" });
  expect(await hasFocus(first)).toBe(true);
  await page.keyboard.type("Straight into the field");
  expect(await composer(page).inputValue()).toBe("Straight into the field");
  expect(visit.problems()).toEqual([]);
});

test("the open conversation is scrolled into view in the list, and an empty search result says so", async () => {
  const { ada, bob } = await twoPeople(harness());
  const chats = [];
  for (let number = 1; number <= 20; number++) {
    const usernames = [bob.username];
    chats.push(await ada.call("startChat", { usernames, title: `Room ${number}` }));
  }
  await using visit = await harness().visit(ada, { path: `/c/${chats[0]?.id}` });
  const { page } = visit;
  await composer(page).waitFor();
  const item = page.getByRole("link", { name: /^Room 1 / });
  await item.waitFor();
  await page.waitForFunction(() => {
    const box = document.querySelector("a[aria-current=page]")?.getBoundingClientRect();
    return box && box.bottom <= innerHeight - 50;
  });
  await page.keyboard.press("Control+k");
  await page.keyboard.type("qqzz");
  await page.getByText("Nothing found for «qqzz».").waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  expect(visit.problems()).toEqual([]);
});

test("a search that the server refuses for a moment is made again by itself", async () => {
  await using server = await startServer(limits({ searches_per_second: 1, search_burst: 1 }));
  const ada = await signUp(server.url, "ada");
  const chat = await groupOf(ada);
  for (const text of ["Take an umbrella", "Good night"]) await say(ada, chat, text);
  await using visit = await harness().visit(ada, { path: `/c/${chat.id}`, url: server.url });
  const { page } = visit;
  await page.getByRole("feed").waitFor();
  await page.keyboard.press("Control+k");
  const found = page.getByRole("option", { name: /Take an umbrella/ });
  const refused = page.getByText("Messages cannot be searched now");
  await until(async () => {
    await outcome(ada.call("searchMessages", { query: "umbrella" }));
    await page.getByRole("combobox").fill("");
    await found.waitFor({ state: "detached" });
    await page.getByRole("combobox").fill("umbrella");
    await found.or(refused).first().waitFor();
    return refused.isVisible();
  }, "a search is refused");
  await found.waitFor();
  await refused.waitFor({ state: "detached" });
  expect(visit.problems()).toEqual([]);
});

test("the switcher ranks conversations and commands by how well they match", async () => {
  const { ada, bob } = await twoPeople(harness());
  for (const title of ["The reset of Settlers", "Offset printing"]) {
    const { id: chat_id } = await ada.call("startChat", { usernames: [bob.username], title });
    await ada.call("sendMessage", { chat_id, content: "Settings are fine" });
  }
  await using visit = await harness().visit(ada);
  const { page } = visit;
  await page.getByRole("link", { name: /Offset/ }).waitFor();
  await page.keyboard.press("Control+k");
  const options = page.getByRole("option");
  const first = (name: string) => options.first().and(page.getByRole("option", { name })).waitFor();
  await page.keyboard.type("set");
  await first("Settings");
  // The choice stays when results of the server arrive.
  await page
    .getByRole("option", { name: /Settings are fine/ })
    .first()
    .waitFor();
  await first("Settings");
  await page.getByRole("combobox").fill("pass");
  await first("Settings");
  await page.getByRole("combobox").fill("offs");
  await first("Offset printing");
  await page.getByRole("combobox").fill("dark");
  await first("Dark theme");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.documentElement.dataset.theme === "dark");
  expect(visit.problems()).toEqual([]);
});

test("the switcher has one choice, which the keys and a moving mouse change", async () => {
  const { ada } = await twoPeople(harness());
  await using visit = await harness().visit(ada);
  const { page } = visit;
  await page.getByRole("heading", { name: "Hello, " }).waitFor();
  await page.keyboard.press("Control+k");
  const options = page.getByRole("option");
  const looks = () =>
    options.evaluateAll((all) =>
      all.map((each) => ({
        isChosen: each.ariaSelected === "true",
        isFilled: getComputedStyle(each).backgroundColor !== "rgba(0, 0, 0, 0)",
      })),
    );
  const isChosen = async (place: number) => {
    await until(async () => (await looks())[place]?.isChosen === true, `choice ${place}`);
    for (const { isChosen, isFilled } of await looks()) expect(isFilled).toBe(isChosen);
  };
  await isChosen(0);
  await options.nth(3).hover();
  await options.nth(2).hover();
  await isChosen(2);
  await page.keyboard.press("ArrowUp");
  await isChosen(1);
  expect(visit.problems()).toEqual([]);
});

test("found messages are shown as plain text", async () => {
  const { ada, chat } = await groupChat(harness());
  await say(ada, chat, "## Recipe\n```js\nconst tea = `hot`;\n```\nEnjoy");
  await using visit = await harness().visit(ada);
  const { page } = visit;
  await page.getByRole("heading", { name: "Choose a conversation" }).waitFor();
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox").fill("recipe");
  const found = page.getByRole("option", { name: "Enjoy" });
  await found.waitFor();
  expect((await found.innerText()).replace(/\s+/g, " ")).toContain("Recipe const tea = hot; Enjoy");
  expect(visit.problems()).toEqual([]);
});

test("a row of the list has a menu by key, button and right click", async () => {
  const { ada, bob, chat } = await groupChat(harness());
  const other = await ada.call("startChat", { usernames: [bob.username], title: "Left soon" });
  await say(bob, chat, "Unread");
  await using visit = await harness().visit(ada);
  const { page } = visit;
  const list = page.getByRole("navigation", { name: "Conversation list" });
  const row = list.getByRole("link", { name: /Unread/ });
  await row.focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Enter");
  await expectNoViolations(page);
  await page.getByRole("menuitem", { name: "Mark as read" }).press("Enter");
  await row.getByRole("img", { name: "1 unread from people" }).waitFor({ state: "detached" });
  await page.keyboard.press("ArrowLeft");
  await untilFocused(row);

  await row.click({ button: "right" });
  await page.getByRole("menuitem", { name: "Members and agents" }).click();
  await page.getByRole("complementary", { name: "Details" }).waitFor();
  expect(page.url()).toContain(chat.id);

  await list.getByRole("link", { name: /Left soon/ }).hover();
  await list.getByRole("button", { name: "Menu of Left soon" }).click();
  await page.getByRole("menuitem", { name: "Leave group" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Leave" }).click();
  await list.getByRole("link", { name: /Left soon/ }).waitFor({ state: "detached" });
  expect(page.url()).toContain(chat.id);
  expect(other.title).toBe("Left soon");
  expect(visit.problems()).toEqual([]);
});

test("Tab reaches radio buttons far down a page without scrolling the window", async () => {
  await using visit = await harness().visit(await harness().person("ada"), { path: "/agents" });
  const { page } = visit;
  await page.getByRole("button", { name: "Edit" }).last().click();
  await page.getByRole("dialog").waitFor();
  await tabTo(page, "Everyone in the conversation");
  expect(await page.evaluate(() => document.documentElement.scrollTop)).toBe(0);
  const choice = page.getByText("Only me", { exact: true }).last();
  const box = await choice.boundingBox();
  expect(box?.y).toBeGreaterThan(0);
  expect((box?.y ?? 0) + (box?.height ?? 0)).toBeLessThanOrEqual(800);
});

test("Enter in the people picker takes the typed person even before the results arrive", async () => {
  const { ada, bob } = await twoPeople(harness());
  await using visit = await harness().visit(ada);
  const { page } = visit;
  await page.getByRole("button", { name: "New conversation" }).first().click();
  const dialog = page.getByRole("dialog", { name: "New conversation" });
  const field = dialog.getByRole("combobox");
  await field.fill(bob.username);
  await field.press("Enter");
  await dialog.getByRole("button", { name: `Remove ${bob.username} (@${bob.username})` }).waitFor();
  expect(await dialog.getByRole("button", { name: /^Remove/ }).count()).toBe(1);

  await field.fill("nobody at all");
  await dialog.getByText("Nobody is called").waitFor();
  await field.press("Enter");
  expect(await dialog.isVisible()).toBe(true);

  await field.fill("");
  await dialog.getByRole("option").first().waitFor();
  await field.press("Enter");
  await page.getByRole("heading", { name: bob.username, level: 1 }).waitFor();
});

test("the Enter that confirms a candidate of an input method only confirms it", async () => {
  const { ada, bob, path } = await groupChat(harness());
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  const confirmCandidate = async (field: Locator) => {
    // Safari sends the key after the end of the composition, with this code.
    for (const how of [{ isComposing: true }, { keyCode: 229 }]) {
      const init = { key: "Enter", bubbles: true, cancelable: true, ...how };
      await field.dispatchEvent("keydown", init);
    }
    await nextFrame(page);
  };
  await composer(page).fill("Half a thought");
  await confirmCandidate(composer(page));
  expect(await composer(page).inputValue()).toBe("Half a thought");

  await page.keyboard.press("Control+k");
  const search = page.getByRole("combobox", { name: /^Search/ });
  await search.fill("New");
  await page.getByRole("option").first().waitFor();
  await confirmCandidate(search);
  expect(await search.isVisible()).toBe(true);
  await page.keyboard.press("Escape");

  await page.getByRole("button", { name: "New conversation" }).first().click();
  const dialog = page.getByRole("dialog", { name: "New conversation" });
  await dialog.getByRole("combobox").fill(bob.username);
  await dialog.getByRole("option").first().waitFor();
  await confirmCandidate(dialog.getByRole("combobox"));
  expect(await dialog.getByRole("button", { name: /^Remove/ }).count()).toBe(0);
});

test("the shortcuts for conversations do not leave an open dialog", async () => {
  const { ada } = await groupChat(harness());
  await using visit = await harness().visit(ada, { path: "/agents" });
  const { page } = visit;
  await page.getByRole("button", { name: "Edit" }).first().click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name", { exact: true }).fill("Not saved yet");
  for (const keys of ["Control+k", "Alt+ArrowDown"]) {
    await page.keyboard.press(keys);
    await nextFrame(page);
    expect(await page.evaluate(() => location.pathname)).toBe("/agents");
    expect(await page.getByRole("dialog", { name: "Search and go to" }).count()).toBe(0);
  }
  expect(await dialog.getByLabel("Name", { exact: true }).inputValue()).toBe("Not saved yet");
});
