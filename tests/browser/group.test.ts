import { expect } from "bun:test";
import { agentOf, type Person } from "@parley/testkit/client.ts";
import { until } from "@parley/testkit/until.ts";
import type { Locator } from "playwright-core";
import { expectNoViolations } from "./axe.ts";
import { startProxy } from "./proxy.ts";
import { slowAgents } from "./slow-agents.ts";
import {
  composer,
  giveSandboxKey,
  groupChat,
  message,
  pressOn,
  say,
  sharedHarness,
  showsBriefly,
  test,
  twoPeople,
  untilFocused,
  write,
} from "./support.ts";

const harness = sharedHarness();
const slowPerson = slowAgents();

/** A group of two people and one agent of each. */
async function newGroup() {
  const { ada, bob } = await twoPeople(harness());
  await Promise.all([giveSandboxKey(ada), giveSandboxKey(bob)]);
  return groupBetween(ada, bob);
}

/** The same with agents that answer until they are stopped. */
async function slowGroup() {
  const [ada, bob] = await Promise.all([slowPerson("ada"), slowPerson("bob")]);
  return { ...(await groupBetween(ada, bob)), url: ada.url };
}

async function groupBetween(ada: Person, bob: Person) {
  for (const owner of [ada, bob]) {
    await owner.call("setAgentLimits", { provider: "claude", spenders: "participants" });
  }
  const chat = await ada.call("startChat", {
    usernames: [bob.username, agentOf(ada)],
    title: "Room",
  });
  await bob.call("addGroupAgent", { chat_id: chat.id, agent_username: agentOf(bob) });
  return { ada, bob, chat, path: `/c/${chat.id}` };
}

/** Waits until an answer is longer than it is now. */
async function untilLonger(answer: Locator): Promise<void> {
  const length = async () => (await answer.textContent())?.length ?? 0;
  const beginning = await length();
  await until(async () => (await length()) > beginning + 20, "the answer goes on");
}

test("the details warn about one's own agent without a key, and lead to the field for it", async () => {
  const { ada, bob } = await twoPeople(harness());
  const { path } = await groupBetween(ada, bob);
  await giveSandboxKey(bob);
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  await page.getByRole("button", { name: "Members and agents" }).click();
  const details = page.getByRole("complementary", { name: "Details" });
  await details.getByText("Every message").click();
  await details.getByText("It has no API key: it fails under every message.").waitFor();
  await expectNoViolations(details);
  await details.getByRole("button", { name: "Set a key" }).click();
  await untilFocused(page.getByRole("region", { name: "Claude" }).getByLabel("Your API key"));

  await giveSandboxKey(ada);
  await page.goto(harness().url + path);
  await page.getByRole("button", { name: "Members and agents" }).click();
  await details.getByText("Every message").waitFor();
  expect(await details.getByText("It has no API key").count()).toBe(0);
  expect(visit.problems()).toEqual([]);
});

test("the details can be closed wherever they are scrolled to", async () => {
  const { ada, path } = await newGroup();
  await using visit = await harness().visit(ada, { path, viewport: { width: 1280, height: 400 } });
  const { page } = visit;
  await page.getByRole("button", { name: "Members and agents" }).click();
  const details = page.getByRole("complementary", { name: "Details" });
  const leave = details.getByRole("button", { name: "Leave group" });
  await leave.evaluate((button) => button.scrollIntoView());
  const close = await details.getByRole("button", { name: "Close details" }).boundingBox();
  expect(close?.y).toBeGreaterThanOrEqual(0);
  await page.mouse.click((close?.x ?? 0) + 5, (close?.y ?? 0) + 5);
  await details.waitFor({ state: "detached" });
  expect(visit.problems()).toEqual([]);
});

test("both people see both agents stream, and one of them stops both", async () => {
  const { ada, bob, path, url } = await slowGroup();
  await using first = await harness().visit(ada, { path, url });
  await using second = await harness().visit(bob, { path, url });
  await composer(second.page).waitFor();
  await write(first.page, `@${agentOf(ada)} and @${agentOf(bob)}: slow, please`);

  for (const { page } of [first, second]) {
    const answers = message(page, "I am in no hurry");
    await answers.nth(1).waitFor();
    await untilLonger(answers.nth(0));
  }
  await second.page.getByRole("button", { name: "Stop agents" }).click();
  await first.page.getByText("Stopped").nth(1).waitFor();
  await second.page.getByText("Stopped").nth(1).waitFor();
  expect([...first.problems(), ...second.problems()]).toEqual([]);
});

test("changes of the group between its messages are accessible", async () => {
  const { ada, chat, path } = await newGroup();
  await ada.call("sendMessage", { chat_id: chat.id, content: "Hello." });
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  await message(page, "Hello.").waitFor();
  await page.getByRole("feed").getByText("added").first().waitFor();
  await expectNoViolations(page.getByRole("feed"));
});

test("a stream continues after a reload", async () => {
  const { ada, path, url } = await slowGroup();
  await using visit = await harness().visit(ada, { path, url });
  const { page } = visit;
  await write(page, `@${agentOf(ada)} slow`);
  const answer = message(page, "I am in no hurry");
  await answer.waitFor();
  await page.reload();
  await untilLonger(answer);
  await page.getByRole("button", { name: "Stop agents" }).click();
  await answer.getByRole("button", { name: "Try again" }).waitFor();
  expect(visit.problems()).toEqual([]);
});

test("an answer that is complete after a later message is announced to screen readers", async () => {
  const { ada, bob, chat, path, url } = await slowGroup();
  await using visit = await harness().visit(ada, { path, url });
  const { page } = visit;
  await write(page, `@${agentOf(ada)} slow`);
  await message(page, "I am in no hurry").waitFor();
  const announced = page.locator('[aria-live="polite"]');
  await say(bob, chat, "While you wait");
  await announced.getByText("While you wait").waitFor({ state: "attached" });
  await page.getByRole("button", { name: "Stop agents" }).click();
  await announced.getByText("I am in no hurry").waitFor({ state: "attached" });
  expect(visit.problems()).toEqual([]);
});

test("an owner stops an answer of their agent and asks for it again", async () => {
  const { ada, path, url } = await slowGroup();
  await using visit = await harness().visit(ada, { path, url });
  const { page } = visit;
  await write(page, `@${agentOf(ada)} slow`);
  const answer = message(page, "I am in no");
  await pressOn(answer, "Stop");
  await message(page, "Stopped").getByRole("button", { name: "Try again" }).click();
  await page.getByText("Stopped answer, 1 of 2").waitFor();
  await answer.waitFor();
  await page.getByRole("button", { name: "Stop agents" }).click();
  await answer.getByText("Stopped", { exact: true }).waitFor();
  expect(visit.problems()).toEqual([]);
});

test("replies, edits, reactions, deletions and typing reach the other person", async () => {
  const { ada, bob, path } = await newGroup();
  await using first = await harness().visit(ada, { path });
  await using second = await harness().visit(bob, { path });
  await composer(second.page).waitFor();
  await write(first.page, "The **first** word");
  const arrived = message(second.page, "The first word");
  await arrived.getByText("first", { exact: true }).waitFor();
  await first.page.getByText("Seen by").waitFor();

  await showsBriefly(first.page.getByText("is typing", { exact: false }).last(), () =>
    composer(second.page).pressSequentially("hm"),
  );
  await composer(second.page).fill("");

  await pressOn(arrived, "Reply");
  await write(second.page, "An answer to it");
  const reply = message(first.page, "An answer to it");
  await reply.getByText("The first word").waitFor();

  await pressOn(reply, "React");
  await first.page.getByRole("button", { name: "party", exact: true }).first().click();
  await message(second.page, "An answer to it").getByRole("button", { name: "🎉, 1" }).click();
  await reply.getByRole("button", { name: "🎉, 2" }).waitFor();

  await composer(first.page).press("ArrowUp");
  await first.page.getByRole("textbox", { name: "Edit message" }).fill("The changed word");
  await first.page.keyboard.press("Enter");
  await message(second.page, "The changed word").first().waitFor();
  await reply.getByText("The changed word").waitFor();

  const mine = message(first.page, "The changed word").first();
  await pressOn(mine, "More");
  await first.page.getByRole("menuitem", { name: "Delete for everyone" }).click();
  await first.page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await second.page.getByText("The changed word").first().waitFor({ state: "detached" });
  await reply.getByText("The message was deleted.").waitFor();
  expect([...first.problems(), ...second.problems()]).toEqual([]);
});

test("members, agents and the title are changed in the details", async () => {
  const { ada, bob, path } = await newGroup();
  const carol = await harness().person("carol");
  await using first = await harness().visit(ada, { path });
  await using second = await harness().visit(bob, { path });
  const { page } = first;
  await page.getByRole("button", { name: "Members and agents" }).click();
  await page.getByLabel("Title").fill("Another name");
  await page.getByRole("button", { name: "Save" }).click();
  await second.page.getByRole("heading", { name: "Another name" }).first().waitFor();

  await page.getByText("Every message").click();
  await page.getByText("It answers whatever a person writes here").waitFor();
  await write(second.page, "Good morning");
  await message(second.page, "I am the built-in sandbox").waitFor();

  await page.getByRole("region", { name: "People" }).getByRole("button", { name: "Add" }).click();
  await page.getByRole("combobox").fill(carol.username);
  await page.getByRole("option", { name: carol.username }).click();
  await page.getByRole("button", { name: "Add to group" }).click();
  await second.page.getByText("3 people, 2 agents").waitFor();

  await page.getByRole("button", { name: `Options for ${carol.username}` }).click();
  await page.getByRole("menuitem", { name: "Remove from group" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
  await second.page.getByText("2 people, 2 agents").waitFor();
  const details = page.getByRole("complementary", { name: "Details" });
  const spare = `@${agentOf(ada, "gpt")}`;
  await details.getByRole("button", { name: `Add ${spare}` }).press("Enter");
  await second.page.getByText("2 people, 3 agents").waitFor();
  await untilFocused(details.getByRole("heading", { name: "Agents" }));

  await second.page.getByRole("button", { name: "Members and agents" }).click();
  await second.page.getByRole("button", { name: "Leave group" }).click();
  await second.page.getByRole("button", { name: "Leave", exact: true }).click();
  await page.getByText("1 person, 2 agents").waitFor();
  expect([...first.problems(), ...second.problems()]).toEqual([]);
});

test("the timeline shows who joined and left, new titles and modes, also after a reload", async () => {
  const { ada, bob, chat, path } = await newGroup();
  const carol = await harness().person("carol");
  await say(ada, chat, "Before");
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  await message(page, "Before").waitFor();
  await ada.call("addChatMembers", { chat_id: chat.id, usernames: [carol.username] });
  await page.getByText(`You added ${carol.username}`).waitFor();
  await bob.call("setChatTitle", { chat_id: chat.id, title: "Tea room" });
  await page.getByText(`${bob.username} named the group «Tea room»`).waitFor();
  await say(bob, chat, "Between");
  await bob.call("setGroupAgentMode", {
    chat_id: chat.id,
    agent_username: agentOf(bob),
    always_on: true,
  });
  const mode = `set Claude of @${bob.username} to answer every message`;
  await page.getByText(`${bob.username} ${mode}`).waitFor();
  await carol.call("leaveChat", { chat_id: chat.id });
  await page.getByText(`${carol.username} (@${carol.username}) left`).waitFor();
  await page.reload();
  await page.getByText(`${carol.username} (@${carol.username}) left`).waitFor();
  const order = await page.getByRole("feed").innerText();
  const places = ["Before", "You added", "Tea room", "Between", mode, ") left"].map((text) =>
    order.indexOf(text),
  );
  expect(places).not.toContain(-1);
  expect(places).toEqual(places.toSorted((one, other) => one - other));
  expect(visit.problems()).toEqual([]);
});

test("a new member does not count as having seen earlier messages", async () => {
  const { ada, bob, chat, path } = await newGroup();
  const { seq } = await say(ada, chat, "Who sees this?");
  await bob.call("readChat", { chat_id: chat.id, seq });
  const carol = await harness().person("carol");
  await ada.call("addChatMembers", { chat_id: chat.id, usernames: [carol.username] });
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  await page.getByText(`Seen by ${bob.username}`, { exact: false }).waitFor();
  const seen = page.locator("span", { hasText: /^· Seen by/ });
  expect(await seen.textContent()).not.toContain(carol.username);
  await using carols = await carol.connect();
  await write(page, "And this?");
  const sent = await carols.event("events.messageNew", ({ content }) => content === "And this?");
  await carol.call("readChat", { chat_id: chat.id, seq: sent.params.seq });
  await page.getByText(`Seen by ${carol.username}`).waitFor();
  expect(visit.problems()).toEqual([]);
});

test("a removed member can copy what they had not sent", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  using proxy = startProxy(harness().url);
  const options = { path, url: proxy.url, networkFails: true };
  await using visit = await harness().visit(bob, options);
  const { page } = visit;
  await composer(page).waitFor();
  proxy.disconnect();
  await page.getByText("The server cannot be reached").waitFor();
  await write(page, "A long text");
  await ada.call("removeChatMember", { chat_id: chat.id, username: bob.username });
  proxy.reconnect();
  await page.getByText("You are no longer part of it.").waitFor();
  await page.reload();
  const unsent = page.getByRole("region", { name: "Not sent" });
  await unsent.getByText("A long text").waitFor();
  await unsent.getByRole("button", { name: "Copy" }).click();
  await page.getByText("Copied.").waitFor();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe("A long text");
  await unsent.getByRole("button", { name: "Discard" }).click();
  await unsent.waitFor({ state: "detached" });
});

test("a removed member sees that they were removed, and the conversation again once they are added", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  await ada.call("setChatTitle", { chat_id: chat.id, title: "The inner circle" });
  await say(ada, chat, "Among ourselves");
  await using visit = await harness().visit(bob, { path });
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

test("mentioning one's own agent that is not in the group offers to add it", async () => {
  const { ada, chat, path } = await groupChat(harness());
  await giveSandboxKey(ada);
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  const offered = page.getByRole("option", { name: `@${agentOf(ada)} not in this group` });
  const dialog = page.getByRole("dialog", { name: "Add Claude to this group?" });
  await composer(page).pressSequentially("@clau");
  await offered.waitFor();
  await page.keyboard.press("Enter");
  await dialog.waitFor();
  await expectNoViolations(page);
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await dialog.waitFor({ state: "detached" });
  expect(await composer(page).inputValue()).toBe("@clau");
  await composer(page).fill("");
  await composer(page).pressSequentially("Say @clau");
  await offered.click();
  await dialog.getByRole("button", { name: "Add" }).click();
  await page.getByText("You added Claude").waitFor();
  await page.keyboard.type("hello");
  await page.keyboard.press("Enter");
  await message(page, "I am the built-in sandbox").waitFor();
  const { items } = await ada.call("getChatHistory", { chat_id: chat.id });
  expect(items.map(({ content }) => content)).toContain(`Say @${agentOf(ada)} hello`);
  expect(visit.problems()).toEqual([]);
});

test("a group to which one was added is marked new until one opens it, also after a reload", async () => {
  const { ada, bob } = await twoPeople(harness());
  await say(bob, await bob.call("startChat", { usernames: [ada.username] }), "Before");
  await using visit = await harness().visit(bob);
  const { page } = visit;
  const rows = page.getByRole("navigation", { name: "Conversation list" });
  await rows.getByRole("link", { name: /Before/ }).waitFor();
  await ada.call("startChat", { usernames: [bob.username], title: "Reading room" });
  const row = rows.getByRole("link", { name: /Reading room/ });
  await row.getByText("New", { exact: true }).waitFor();
  await page.reload();
  await row.getByText("New", { exact: true }).waitFor();
  await row.click();
  await row.getByText("New", { exact: true }).waitFor({ state: "detached" });
  await page.reload();
  await row.waitFor();
  expect(await row.getByText("New", { exact: true }).count()).toBe(0);
  expect(visit.problems()).toEqual([]);
});

test("a direct conversation that somebody else opens is listed once something is written in it", async () => {
  const { ada, bob, chat } = await groupChat(harness());
  await using visit = await harness().visit(bob);
  const { page } = visit;
  const rows = page.getByRole("navigation", { name: "Conversation list" });
  const direct = await ada.call("startChat", { usernames: [bob.username], kind: "direct" });
  // Later than the conversation is announced.
  await say(ada, chat, "Announced");
  await rows.getByRole("link", { name: /Announced/ }).waitFor();
  expect(await rows.getByRole("link").count()).toBe(1);
  await say(ada, direct, "Hello Bob");
  await rows.getByRole("link", { name: /Hello Bob/ }).waitFor();
  expect(visit.problems()).toEqual([]);
});
