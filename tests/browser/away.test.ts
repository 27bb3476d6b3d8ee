import { expect } from "bun:test";
import { agentOf, groupOf } from "@parley/testkit/client.ts";
import type { Page } from "playwright-core";
import { composer, giveSandboxKey, message, sharedHouse, test } from "./support.ts";

const house = sharedHouse();

interface Shown {
  title: string;
  body: string;
  /** As if the person had clicked on it. */
  click(): void;
}

/** A browser of one's own has no place to show notifications in: they are noted instead. */
async function noteNotifications(page: Page): Promise<void> {
  await page.addInitScript(() => {
    const shown: Shown[] = [];
    class Noted {
      static permission = "granted";
      static requestPermission = async () => "granted";
      onclick = () => {};
      constructor(title: string, { body = "" }: NotificationOptions = {}) {
        shown.push({ title, body, click: () => this.onclick() });
      }
      close() {}
    }
    Object.assign(window, { shown, Notification: Noted });
  });
  await page.reload();
}

const shown = (page: Page): Promise<Pick<Shown, "title" | "body">[]> =>
  page.evaluate(() => {
    const { shown } = window as unknown as { shown: Shown[] };
    return shown.map(({ title, body }) => ({ title, body }));
  });

const look = (page: Page, isHere: boolean) =>
  page.evaluate((here) => {
    document.hasFocus = () => here;
  }, isHere);

test("whoever looks elsewhere is notified, if they want to be", async () => {
  const [ada, bob] = await Promise.all([house().person("ada"), house().person("bob")]);
  await giveSandboxKey(ada);
  const chat = await groupOf(ada, bob);
  const talk = await ada.call("startChat", { usernames: [agentOf(ada)] });
  await using visit = await house().visit(ada, { path: "/settings" });
  const { page } = visit;
  await noteNotifications(page);
  await look(page, false);
  const say = (content: string) => bob.call("sendMessage", { chat_id: chat.id, content });
  const arrived = (words: string) => page.getByRole("link", { name: words }).waitFor();

  await say("Nobody asked to be told");
  await arrived("Nobody asked to be told");
  expect(await shown(page)).toEqual([]);

  await page.getByText("When I am away").click();
  await page.getByRole("radio", { name: "When I am away", checked: true }).waitFor();
  await say("Are you **there**?");
  await arrived("Are you there?");
  await ada.call("sendMessage", { chat_id: talk.id, content: "Hello" });
  await page.waitForFunction(() => (window as unknown as { shown: Shown[] }).shown.length === 2);
  expect(await shown(page)).toEqual([
    { title: bob.account.display_name, body: "Are you there?" },
    {
      title: expect.stringContaining("Claude"),
      body: expect.stringContaining("I am the built-in sandbox"),
    },
  ]);

  await page.evaluate(() => (window as unknown as { shown: Shown[] }).shown[0]?.click());
  await message(page, "Are you there?").waitFor();
  await look(page, true);
  await say("Now I see you");
  await message(page, "Now I see you").waitFor();
  expect(await shown(page)).toHaveLength(2);
  expect(visit.problems()).toEqual([]);
});

test("the title of the page counts what is unread, and says where one is", async () => {
  const [ada, bob] = await Promise.all([house().person("ada"), house().person("bob")]);
  const chat = await groupOf(ada, bob);
  await using visit = await house().visit(ada);
  const { page } = visit;
  await page.getByRole("heading", { name: "Choose a conversation" }).waitFor();
  expect(await page.title()).toBe("Parley");
  for (const content of ["One", "Two"]) {
    await bob.call("sendMessage", { chat_id: chat.id, content });
  }
  await page.waitForFunction(() => document.title === "(2) Parley");
  await page.getByRole("link", { name: /Two/ }).click();
  await page.waitForFunction((name) => document.title === `${name} · Parley`, bob.username);
  await page.getByRole("button", { name: "My agents" }).click();
  await page.waitForFunction(() => document.title === "My agents · Parley");
  expect(visit.problems()).toEqual([]);
});

test("Escape closes the details, and whatever lies above them first", async () => {
  const [ada, bob] = await Promise.all([house().person("ada"), house().person("bob")]);
  const chat = await groupOf(ada, bob);
  await using visit = await house().visit(ada, { path: `/c/${chat.id}` });
  const { page } = visit;
  const details = page.getByRole("complementary", { name: "Details" });
  const opener = page.getByRole("button", { name: "Members and agents" });
  const hasFocus = () => opener.evaluate((button) => button === document.activeElement);
  await composer(page).waitFor();

  await opener.click();
  await details.waitFor();
  await page.keyboard.press("Escape");
  await details.waitFor({ state: "detached" });

  await opener.click();
  await details.getByRole("button", { name: "Add" }).first().focus();
  await page.keyboard.press("Escape");
  await details.waitFor({ state: "detached" });
  expect(await hasFocus()).toBe(true);

  await opener.click();
  const people = page.getByRole("region", { name: "People" });
  await people.getByRole("button", { name: "Add" }).click();
  await page.getByRole("dialog", { name: "Add people" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await details.waitFor();
  await people.getByRole("button", { name: "Options for" }).first().click();
  await page.keyboard.press("Escape");
  await page.getByRole("menu").waitFor({ state: "detached" });
  await details.waitFor();
  expect(visit.problems()).toEqual([]);
});

test("whoever is removed from a group is told so, and is back when they are let in again", async () => {
  const [ada, bob] = await Promise.all([house().person("ada"), house().person("bob")]);
  const chat = await groupOf(ada, bob);
  await ada.call("setChatTitle", { chat_id: chat.id, title: "The inner circle" });
  await ada.call("sendMessage", { chat_id: chat.id, content: "Among ourselves" });
  await using visit = await house().visit(bob, { path: `/c/${chat.id}` });
  const { page } = visit;
  await message(page, "Among ourselves").waitFor();
  await ada.call("removeChatMember", { chat_id: chat.id, username: bob.username });
  await page.getByRole("heading", { name: "This conversation is not here" }).waitFor();
  await page.getByText("You are no longer part of it.").waitFor();
  await page.getByRole("link", { name: /The inner circle/ }).waitFor({ state: "detached" });
  expect(await page.getByText("Among ourselves").count()).toBe(0);

  await ada.call("addChatMembers", { chat_id: chat.id, usernames: [bob.username] });
  await message(page, "Among ourselves").waitFor();
  await composer(page).waitFor();

  await ada.call("removeChatMember", { chat_id: chat.id, username: bob.username });
  await page.getByRole("button", { name: "Back to conversations" }).click();
  await page.waitForFunction(() => location.pathname === "/");
  expect(visit.problems()).toEqual([]);
});

test("a conversation that opens in a tab behind others keeps its line until it is seen", async () => {
  const [ada, bob] = await Promise.all([house().person("ada"), house().person("bob")]);
  const chat = await groupOf(ada, bob);
  const { seq } = await bob.call("sendMessage", { chat_id: chat.id, content: "You know this" });
  await ada.call("readChat", { chat_id: chat.id, seq });
  await bob.call("sendMessage", { chat_id: chat.id, content: "You have not seen this" });
  await using visit = await house().visit(ada);
  const { page } = visit;
  await page.addInitScript(() => {
    let state = "hidden";
    Object.defineProperty(document, "visibilityState", { get: () => state });
    Object.assign(window, {
      comeForward() {
        state = "visible";
        document.dispatchEvent(new Event("visibilitychange"));
      },
    });
  });
  await page.goto(new URL(`/c/${chat.id}`, page.url()).href);
  await message(page, "You have not seen this").waitFor();
  await page.evaluate(() => (window as unknown as { comeForward(): void }).comeForward());
  await page.getByText("New messages", { exact: true }).waitFor();
  const shown = (await page.getByRole("feed").textContent()) ?? "";
  const order = ["You know this", "New messages", "You have not seen this"];
  expect(order.toSorted((one, other) => shown.indexOf(one) - shown.indexOf(other))).toEqual(order);
  expect(visit.problems()).toEqual([]);
});
