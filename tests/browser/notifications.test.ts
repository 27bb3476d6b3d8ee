import { expect } from "bun:test";
import { Backend, serviceKeySetting } from "@parley/testkit/backend.ts";
import { agentOf, groupOf, signUp } from "@parley/testkit/client.ts";
import { noRates, startServer } from "@parley/testkit/server.ts";
import type { Page } from "playwright-core";
import {
  composer,
  giveSandboxKey,
  groupChat,
  message,
  say,
  sharedHarness,
  test,
} from "./support.ts";

const harness = sharedHarness();

interface Shown {
  title: string;
  body: string;
  /** Clicks the notification. */
  click(): void;
}

/** Replaces `Notification`, which headless browsers do not show, with a class that records. */
async function recordNotifications(page: Page): Promise<void> {
  await page.addInitScript(() => {
    const shown: Shown[] = [];
    class Recorded {
      static permission = "granted";
      static requestPermission = async () => "granted";
      onclick = () => {};
      constructor(title: string, { body = "" }: NotificationOptions = {}) {
        shown.push({ title, body, click: () => this.onclick() });
      }
      close() {}
    }
    Object.assign(window, { shown, Notification: Recorded });
  });
  await page.reload();
}

const shown = (page: Page): Promise<Pick<Shown, "title" | "body">[]> =>
  page.evaluate(() => {
    const { shown } = window as unknown as { shown: Shown[] };
    return shown.map(({ title, body }) => ({ title, body }));
  });

const setWindowFocus = (page: Page, isFocused: boolean) =>
  page.evaluate((focused) => {
    document.hasFocus = () => focused;
    window.dispatchEvent(new Event(focused ? "focus" : "blur"));
  }, isFocused);

test("notifications stay off if the browser refuses them", async () => {
  const { ada } = await groupChat(harness());
  await using visit = await harness().visit(ada, { path: "/settings/notifications" });
  const { page } = visit;
  await page.addInitScript(() => {
    const requestPermission = async () => "denied";
    Object.assign(window, { Notification: { permission: "default", requestPermission } });
  });
  await page.reload();
  const choice = page.getByRole("radio", { name: "When I am away" });
  await page.getByText("When I am away").click();
  await page.waitForFunction(() => localStorage.getItem("parley.notifications") === "on");
  expect(await choice.isChecked()).toBe(false);
  await page.getByRole("radio", { name: "Off", checked: true }).first().waitFor();
  expect(visit.problems()).toEqual([]);
});

test("messages are notified while the window has no focus, if notifications are on", async () => {
  const { ada, bob, chat } = await groupChat(harness());
  await giveSandboxKey(ada);
  const talk = await ada.call("startChat", { usernames: [agentOf(ada)] });
  await using visit = await harness().visit(ada, { path: "/settings/notifications" });
  const { page } = visit;
  await recordNotifications(page);
  await setWindowFocus(page, false);
  const arrived = (words: string) => page.getByRole("link", { name: words }).waitFor();

  await say(bob, chat, "Notifications are off");
  await arrived("Notifications are off");
  expect(await shown(page)).toEqual([]);

  await page.getByText("When I am away").click();
  await page.getByRole("radio", { name: "When I am away", checked: true }).waitFor();
  await say(bob, chat, "Are you **there**?");
  await arrived("Are you there?");
  await say(ada, talk, "Hello");
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
  await setWindowFocus(page, true);
  await say(bob, chat, "The window has the focus");
  await message(page, "The window has the focus").waitFor();
  expect(await shown(page)).toHaveLength(2);
  expect(visit.problems()).toEqual([]);
});

test("nothing is notified while the person looks at another tab", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  await using visit = await harness().visit(ada, { path: "/settings/notifications" });
  const { page } = visit;
  await recordNotifications(page);
  await page.getByText("When I am away").click();
  await page.getByRole("radio", { name: "When I am away", checked: true }).waitFor();
  const other = await page.context().newPage();
  await other.goto(harness().url + path);
  await composer(other).waitFor();
  await setWindowFocus(page, false);
  await say(bob, chat, "Seen in the other tab");
  await message(other, "Seen in the other tab").waitFor();
  await page.getByRole("link", { name: "Seen in the other tab" }).waitFor();

  await setWindowFocus(other, false);
  await say(bob, chat, "Seen nowhere");
  await page.waitForFunction(() => (window as unknown as { shown: Shown[] }).shown.length > 0);
  expect(await shown(page)).toEqual([{ title: bob.account.display_name, body: "Seen nowhere" }]);
  expect(visit.problems()).toEqual([]);
});

test("imported messages appear at once, without a notification or an unread count", async () => {
  await using server = await startServer({ ...noRates, ...serviceKeySetting() });
  const [ada, bob] = [await signUp(server.url, "ada"), await signUp(server.url, "bob")];
  const chat = await groupOf(ada, bob);
  await using visit = await harness().visit(ada, {
    url: server.url,
    path: "/settings/notifications",
  });
  const { page } = visit;
  await recordNotifications(page);
  await page.getByText("When I am away").click();
  await page.getByRole("radio", { name: "When I am away", checked: true }).waitFor();
  await setWindowFocus(page, false);
  const past = (n: number) => ({
    sender: bob.username,
    content: `Once, @${ada.username}, ${n}`,
    created_at: "2024-05-01T09:30:00.000Z",
    client_msg_id: `${n}`,
  });
  const messages = [past(1), past(2), past(3)];
  await new Backend(server.url).call("importMessages", { chat_id: chat.id, messages });
  await page.getByRole("link", { name: /Once,.*3/ }).waitFor();
  expect(await page.title()).toBe("Notifications · Settings · Parley");
  await say(bob, chat, "Now");
  await page.waitForFunction(() => document.title.startsWith("(1) "));
  await page.waitForFunction(() => (window as unknown as { shown: Shown[] }).shown.length > 0);
  expect(await shown(page)).toEqual([{ title: bob.account.display_name, body: "Now" }]);
  expect(visit.problems()).toEqual([]);
});

test("the page title shows the unread count and the current page", async () => {
  const { ada, bob, chat } = await groupChat(harness());
  await using visit = await harness().visit(ada);
  const { page } = visit;
  await page.getByRole("heading", { name: "Choose a conversation" }).waitFor();
  expect(await page.title()).toBe("Parley");
  for (const content of ["One", "Two"]) {
    await say(bob, chat, content);
  }
  await page.waitForFunction(() => document.title === "(2) Parley");
  await page.getByRole("link", { name: /Two/ }).click();
  await page.waitForFunction((name) => document.title === `${name} · Parley`, bob.username);
  await page.getByRole("button", { name: "My agents" }).click();
  await page.waitForFunction(() => document.title === "My agents · Parley");
  expect(visit.problems()).toEqual([]);
});

test("the «New messages» line of a background tab stays until the tab is visible", async () => {
  const { ada, bob, chat } = await groupChat(harness());
  const { seq } = await say(bob, chat, "You know this");
  await ada.call("readChat", { chat_id: chat.id, seq });
  await say(bob, chat, "You have not seen this");
  await using visit = await harness().visit(ada);
  const { page } = visit;
  await page.addInitScript(() => {
    let state = "hidden";
    Object.defineProperty(document, "visibilityState", { get: () => state });
    Object.assign(window, {
      makeVisible() {
        state = "visible";
        document.dispatchEvent(new Event("visibilitychange"));
      },
    });
  });
  await page.goto(new URL(`/c/${chat.id}`, page.url()).href);
  await message(page, "You have not seen this").waitFor();
  await page.evaluate(() => (window as unknown as { makeVisible(): void }).makeVisible());
  await page.getByText("New messages", { exact: true }).waitFor();
  const shown = (await page.getByRole("feed").textContent()) ?? "";
  const order = ["You know this", "New messages", "You have not seen this"];
  expect(order.toSorted((one, other) => shown.indexOf(one) - shown.indexOf(other))).toEqual(order);
  expect(visit.problems()).toEqual([]);
});
