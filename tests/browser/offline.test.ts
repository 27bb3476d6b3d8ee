import { expect } from "bun:test";
import { agentOf, groupOf } from "@parley/testkit/client.ts";
import { until } from "@parley/testkit/until.ts";
import { sendFiles } from "./files.ts";
import { png, wav } from "./pictures.ts";
import { startProxy } from "./proxy.ts";
import { slowAgents } from "./slow-agents.ts";
import {
  composer,
  groupChat,
  message,
  nextFrame,
  pressOn,
  say,
  sharedHarness,
  test,
  write,
} from "./support.ts";

const harness = sharedHarness();
const slowPerson = slowAgents();

test("a message written offline is sent exactly once after reconnecting, and missed messages arrive", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  using proxy = startProxy(harness().url);
  const options = { path, url: proxy.url, networkFails: true };
  await using visit = await harness().visit(ada, options);
  const { page } = visit;
  await composer(page).waitFor();
  await write(page, "Before the storm");
  await page.getByText("Sent").waitFor();

  proxy.disconnect();
  await page.getByText("The server cannot be reached").waitFor();
  await write(page, "Written without a connection");
  await message(page, "Written without a connection").getByText("Sending").waitFor();
  const item = page.getByRole("navigation", { name: "Conversation list" }).getByRole("link");
  await item.getByText("You: Written without a connection").waitFor();
  await item.getByRole("img", { name: "Sending" }).waitFor();
  await say(bob, chat, "Said in the meantime");

  proxy.reconnect();
  await page.getByText("The server cannot be reached").waitFor({ state: "detached" });
  await message(page, "Said in the meantime").waitFor();
  await message(page, "Written without a connection").getByText("Sent").waitFor();
  const { items } = await bob.call("getChatHistory", { chat_id: chat.id });
  expect(items.map(({ content }) => content).toSorted()).toEqual([
    "Before the storm",
    "Said in the meantime",
    "Written without a connection",
  ]);
  expect(await page.getByRole("article").count()).toBe(3);
  expect(await item.getByRole("img", { name: "Sending" }).count()).toBe(0);
  expect(visit.problems()).toEqual([]);
});

test("an unreachable server and a missing network have different messages, and Retry reconnects", async () => {
  const ada = await harness().person("ada");
  using proxy = startProxy(harness().url);
  await using visit = await harness().visit(ada, { url: proxy.url, networkFails: true });
  const { page } = visit;
  await page.getByRole("heading", { name: /^Hello/ }).waitFor();
  proxy.disconnect();
  await page.getByRole("button", { name: "Retry" }).waitFor();
  await page.getByText("The server cannot be reached").waitFor();
  expect(await page.getByText("You are offline").count()).toBe(0);
  // The button may go before it is pressed: the client also reconnects by itself.
  await page.getByRole("button", { name: "Retry" }).focus();
  proxy.reconnect();
  await page.keyboard.press("Enter");
  await page.getByText("The server cannot be reached").waitFor({ state: "detached" });

  await page.context().setOffline(true);
  await page.getByText("You are offline").waitFor();
  expect(await page.getByRole("button", { name: "Retry" }).count()).toBe(0);
  await page.context().setOffline(false);
  await page.getByText("You are offline").waitFor({ state: "detached" });
  expect(visit.problems()).toEqual([]);
});

test("signing out in one tab without a connection signs out the other tabs for good", async () => {
  const ada = await harness().person("ada");
  using proxy = startProxy(harness().url);
  await using visit = await harness().visit(ada, { url: proxy.url, networkFails: true });
  const { page } = visit;
  const other = await page.context().newPage();
  await other.goto(proxy.url);
  for (const tab of [page, other]) await tab.getByRole("heading", { name: /^Hello/ }).waitFor();
  proxy.disconnect();
  for (const tab of [page, other]) await tab.getByText("The server cannot be reached").waitFor();

  await other.getByRole("button", { name: "Menu", exact: true }).click();
  await other.getByRole("menuitem", { name: "Sign out" }).click();
  for (const tab of [other, page]) await tab.getByLabel("Password").waitFor();
  proxy.reconnect();
  await page.reload();
  await page.getByLabel("Password").waitFor();
  expect(visit.problems()).toEqual([]);
});

test("signing out asks before it deletes unsent messages, also those of other tabs", async () => {
  const { ada, path } = await groupChat(harness());
  using proxy = startProxy(harness().url);
  const options = { path, url: proxy.url, networkFails: true };
  await using visit = await harness().visit(ada, options);
  const { page } = visit;
  const other = await page.context().newPage();
  await other.goto(proxy.url + path);
  for (const tab of [page, other]) await composer(tab).waitFor();
  proxy.disconnect();
  await page.getByText("The server cannot be reached").waitFor();
  await write(page, "Not sent yet");
  const signOut = async () => {
    await other.getByRole("button", { name: "Menu", exact: true }).click();
    await other.getByRole("menuitem", { name: "Sign out" }).click();
  };
  const dialog = other.getByRole("dialog", { name: "Sign out?" });
  await signOut();
  await dialog.getByText("1 message of yours is not sent yet.").waitFor();
  await dialog.getByRole("button", { name: "Stay signed in" }).click();
  await dialog.waitFor({ state: "detached" });
  await message(page, "Not sent yet").getByText("Sending").waitFor();
  await signOut();
  await dialog.getByRole("button", { name: "Sign out" }).click();
  for (const tab of [other, page]) await tab.getByLabel("Password").waitFor();
  expect(await page.evaluate(() => JSON.stringify(localStorage))).not.toContain("Not sent yet");
  expect(visit.problems()).toEqual([]);
});

test("signing out asks before it deletes a draft, also one of another tab", async () => {
  const { ada, path } = await groupChat(harness());
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  const other = await page.context().newPage();
  await other.goto(harness().url + path);
  for (const tab of [page, other]) await composer(tab).waitFor();
  await composer(page).fill("Half a thought");
  await until(
    async () => (await composer(other).inputValue()) !== "",
    "the draft in the other tab",
  );
  await other.getByRole("button", { name: "Menu", exact: true }).click();
  await other.getByRole("menuitem", { name: "Sign out" }).click();
  const dialog = other.getByRole("dialog", { name: "Sign out?" });
  await dialog.getByText("1 draft of yours is not sent yet.").waitFor();
  await dialog.getByRole("button", { name: "Sign out" }).click();
  for (const tab of [other, page]) await tab.getByLabel("Password").waitFor();
  expect(await page.evaluate(() => JSON.stringify(localStorage))).not.toContain("Half a thought");
});

test("a reply to a deleted message can be sent as a new one; discarded in one tab, it is gone in the others", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  const { id } = await say(bob, chat, "A question");
  using proxy = startProxy(harness().url);
  const options = { path, url: proxy.url, networkFails: true };
  await using visit = await harness().visit(ada, options);
  const { page } = visit;
  await message(page, "A question").waitFor();
  proxy.disconnect();
  await page.getByText("The server cannot be reached").waitFor();
  for (const answer of ["An answer", "Another answer"]) {
    await pressOn(page.getByRole("article").first(), "Reply");
    await write(page, answer);
  }
  await bob.call("deleteMessages", { chat_id: chat.id, message_ids: [id] });
  proxy.reconnect();
  const failed = message(page, "An answer");
  await failed.getByText("Not sent: the message that it answers was deleted.").waitFor();
  expect(await failed.getByRole("button", { name: "Try again" }).count()).toBe(0);
  await page.getByRole("link", { name: /Not sent: Another answer/ }).waitFor();

  const other = await page.context().newPage();
  await other.goto(proxy.url + path);
  await message(other, "An answer").getByText("Not sent").waitFor();
  await failed.getByRole("button", { name: "Discard" }).click();
  await message(other, "An answer").waitFor({ state: "detached" });
  const resent = message(page, "Another answer");
  await resent.getByRole("button", { name: "Send as a new message" }).click();
  await message(other, "Another answer").getByText(/Sent$/).waitFor();
  expect(await page.getByRole("article").count()).toBe(1);
  await other.reload();
  await composer(other).waitFor();
  expect(await message(other, "An answer").count()).toBe(0);
  expect(visit.problems()).toEqual([]);
});

test("a message written offline in a tab that was closed is sent by another tab", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  using proxy = startProxy(harness().url);
  const options = { path, url: proxy.url, networkFails: true };
  await using visit = await harness().visit(ada, options);
  const { page } = visit;
  const other = await page.context().newPage();
  await other.goto(proxy.url + path);
  for (const tab of [page, other]) await composer(tab).waitFor();
  proxy.disconnect();
  for (const tab of [page, other]) await tab.getByText("The server cannot be reached").waitFor();
  await write(other, "Before closing the tab");
  await message(other, "Before closing the tab").getByText("Sending").waitFor();
  await other.close();
  proxy.reconnect();
  await message(page, "Before closing the tab").getByText("Sent").waitFor();
  const { items } = await bob.call("getChatHistory", { chat_id: chat.id });
  expect(items.map(({ content }) => content)).toEqual(["Before closing the tab"]);
  expect(visit.problems()).toEqual([]);
});

test("a draft that is sent in one tab is gone in the others", async () => {
  const { ada, path } = await groupChat(harness());
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  await composer(page).fill("Once only");
  const other = await page.context().newPage();
  await other.goto(page.url());
  await other.waitForFunction(() => document.querySelector("textarea")?.value === "Once only");
  await write(page, "Once only");
  await message(other, "Once only").waitFor();
  await other.waitForFunction(() => document.querySelector("textarea")?.value === "");
  expect(visit.problems()).toEqual([]);
});

test("a search offline says so, finds conversations, and completes after reconnecting", async () => {
  const { ada, bob, chat } = await groupChat(harness());
  await ada.call("setChatTitle", { chat_id: chat.id, title: "Umbrellas" });
  await say(bob, chat, "Take an umbrella along");
  await using visit = await harness().visit(ada, { networkFails: true });
  const { page } = visit;
  await page.getByRole("link", { name: /Umbrellas/ }).waitFor();
  await page.context().setOffline(true);
  await page.getByText("You are offline").waitFor();
  await page.keyboard.press("Control+k");
  const dialog = page.getByRole("dialog");
  await page.keyboard.type("umbr");
  await dialog.getByRole("status").getByText("You are offline").waitFor();
  await dialog.getByRole("option", { name: "Umbrellas" }).waitFor();
  expect(await dialog.getByText("Nothing found").count()).toBe(0);
  await page.context().setOffline(false);
  await dialog.getByRole("option", { name: /Take an umbrella/ }).waitFor();
  await dialog.getByText("You are offline").waitFor({ state: "detached" });
  expect(visit.problems()).toEqual([]);
});

test("an answer that is interrupted by a lost connection says so until the connection is back", async () => {
  const ada = await slowPerson("ada");
  const chat = await ada.call("startChat", { usernames: [agentOf(ada)] });
  using proxy = startProxy(ada.url);
  const options = { path: `/c/${chat.id}`, url: proxy.url, networkFails: true };
  await using visit = await harness().visit(ada, options);
  const { page } = visit;
  await composer(page).waitFor();
  await write(page, "slow");
  await page.getByRole("button", { name: "Stop" }).waitFor();
  proxy.disconnect();
  await page.getByText("The answer is updated when the connection is back").waitFor();
  proxy.reconnect();
  await page
    .getByText("The answer is updated when the connection is back")
    .waitFor({ state: "detached" });
  expect(visit.problems()).toEqual([]);
});

test("unsent messages stay in the order of sending when one of two tabs is reloaded", async () => {
  const { ada, path } = await groupChat(harness());
  using proxy = startProxy(harness().url);
  await using visit = await harness().visit(ada, {
    path,
    url: proxy.url,
    networkFails: true,
    serviceWorkers: "allow",
  });
  const { page } = visit;
  await page.evaluate(() => navigator.serviceWorker.ready.then(() => true));
  const other = await page.context().newPage();
  await other.goto(proxy.url + path);
  for (const tab of [page, other]) await composer(tab).waitFor();
  proxy.disconnect();
  for (const tab of [page, other]) await tab.getByText("The server cannot be reached").waitFor();
  const written = ["First", "Second", "Third", "Fourth"];
  for (const text of written) {
    await write(page, text);
    await message(page, text).getByText("Sending").waitFor();
  }
  await page.reload();
  for (const tab of [page, other]) {
    for (const text of written) await message(tab, text).waitFor();
    const shown = await tab.getByRole("article").allInnerTexts();
    expect(shown.map((text) => written.find((each) => text.includes(each)))).toEqual(written);
    const list = tab.getByRole("navigation", { name: "Conversation list" });
    await list.getByText("You: Fourth").waitFor();
  }
  expect(visit.problems()).toEqual([]);
});

test("drafts survive a reload", async () => {
  const { ada, path } = await groupChat(harness());
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  await composer(page).fill("Half a thought");
  await page.reload();
  await composer(page).waitFor();
  expect(await composer(page).inputValue()).toBe("Half a thought");
  expect(visit.problems()).toEqual([]);
});

test("a start without a connection shows cached conversations and sends new messages later", async () => {
  const { ada, bob, chat } = await groupChat(harness());
  await ada.call("setChatTitle", { chat_id: chat.id, title: "On the train" });
  await sendFiles(bob, chat, { "hill.png": png(50, 40), "song.wav": wav() }, "Before the tunnel");
  using proxy = startProxy(harness().url);
  await using visit = await harness().visit(ada, {
    url: proxy.url,
    networkFails: true,
    serviceWorkers: "allow",
  });
  const { page } = visit;
  await page.getByRole("link", { name: /On the train/ }).click();
  await message(page, "Before the tunnel").waitFor();
  await page.evaluate(() => navigator.serviceWorker.ready.then(() => true));

  proxy.disconnect();
  const response = await page.reload();
  expect(response?.fromServiceWorker()).toBe(true);
  const headers = (await response?.allHeaders()) ?? {};
  expect(headers["content-security-policy"]).toContain("script-src 'self'");
  await message(page, "Before the tunnel").waitFor();
  await page.getByText("The server cannot be reached").waitFor();
  // The picture and the player say why they are empty.
  await page.getByText("Not stored on this device").nth(1).waitFor();
  await write(page, "Inside the tunnel");
  await message(page, "Inside the tunnel").getByText("Sending").waitFor();
  await page.getByRole("button", { name: "Insert an emoji" }).click();
  await page.getByRole("button", { name: "train", exact: true }).waitFor();
  await page.keyboard.press("Escape");
  await page.reload();
  await message(page, "Inside the tunnel").getByText("Sending").waitFor();

  await say(bob, chat, "Beyond the tunnel");
  proxy.reconnect();
  await message(page, "Beyond the tunnel").waitFor();
  await message(page, "Inside the tunnel").getByText("Sent").waitFor();
  await page.getByText("The server cannot be reached").waitFor({ state: "detached" });
  const { items } = await bob.call("getChatHistory", { chat_id: chat.id });
  expect(items.map(({ content }) => content).toSorted()).toEqual([
    "Before the tunnel",
    "Beyond the tunnel",
    "Inside the tunnel",
  ]);

  await page.getByRole("button", { name: "Menu", exact: true }).click();
  await page.getByRole("menuitem", { name: "Sign out" }).click();
  await page
    .getByRole("heading", { name: "Create your account" })
    .or(page.getByRole("heading", { name: "Sign in" }))
    .first()
    .waitFor();
  const kept = await page.evaluate(() => JSON.stringify(localStorage));
  expect(kept).not.toContain("tunnel");
  expect(visit.problems()).toEqual([]);
});

test("the list of conversations goes on after its end was reached before the connection was made", async () => {
  const { ada, bob } = await groupChat(harness());
  for (let number = 0; number < 54; number++) await groupOf(ada, bob);
  await using visit = await harness().visit(ada);
  const { page } = visit;
  const items = page.getByRole("navigation", { name: "Conversation list" }).getByRole("link");
  await items.nth(49).waitFor();
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  await page.routeWebSocket("**", async (socket) => {
    await released;
    socket.connectToServer();
  });
  await page.reload();
  await items.last().scrollIntoViewIfNeeded();
  await nextFrame(page);
  release();
  await page.getByText("Connecting").waitFor({ state: "detached" });
  while ((await items.count()) < 55) {
    await items.first().scrollIntoViewIfNeeded();
    await nextFrame(page);
    await items.last().scrollIntoViewIfNeeded();
    await nextFrame(page);
  }
  expect(visit.problems()).toEqual([]);
});

test("a conversation that cannot be shown does not prevent others from being shown", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  const other = await groupOf(ada, bob);
  await ada.call("setChatTitle", { chat_id: chat.id, title: "Broken" });
  await ada.call("setChatTitle", { chat_id: other.id, title: "Working" });
  await using visit = await harness().visit(ada, { path, networkFails: true });
  const { page } = visit;
  await composer(page).waitFor();
  await page.route("**/*.js", (route) => route.abort());
  await page.getByRole("button", { name: "Members and agents" }).click();
  await page.getByRole("heading", { name: "This page could not be shown" }).waitFor();
  await page.getByRole("link", { name: /Working/ }).click();
  await page.getByRole("heading", { name: "Working", level: 1 }).waitFor();
});
