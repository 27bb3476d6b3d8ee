import { expect } from "bun:test";
import { agentOf } from "@parley/testkit/client.ts";
import type { Locator, Page } from "playwright-core";
import { slowAgents } from "./slow-agents.ts";
import {
  agentChat,
  composer,
  goBack,
  hasFocus,
  message,
  pressOn,
  sharedHarness,
  test,
  untilFocused,
  write,
} from "./support.ts";

const harness = sharedHarness();
const slowPerson = slowAgents();

const cardOf = (page: Page, username: string) =>
  page.getByRole("region").filter({ hasText: `@${username}` });

/** Holds back the reply to the second read of the agents after a key was stored, in the next page. */
async function holdLastReply(page: Page) {
  const held = Promise.withResolvers<() => void>();
  await page.routeWebSocket("**", (socket) => {
    const server = socket.connectToServer();
    let reads: unknown[] | undefined;
    socket.onMessage((data) => {
      const { method, id } = JSON.parse(String(data));
      if (method === "setAgentKey") reads ??= [];
      if (method === "getMyAgents") reads?.push(id);
      server.send(data);
    });
    server.onMessage((data) => {
      const { id } = JSON.parse(String(data));
      if (id !== undefined && id === reads?.[1]) held.resolve(() => socket.send(data));
      else socket.send(data);
    });
  });
  return { release: async () => (await held.promise)() };
}

test("keys are stored, masked, replaced and removed", async () => {
  const ada = await harness().person("ada");
  await using visit = await harness().visit(ada, { path: "/agents" });
  const { page } = visit;
  const card = cardOf(page, agentOf(ada));
  await card.getByLabel("Your API key").fill("sk-ant-test-0123456789abcdef");
  await card.getByRole("button", { name: "Save" }).first().click();
  await card.getByText("••••••••cdef").waitFor();
  expect(await page.content()).not.toContain("0123456789");

  await card.getByRole("button", { name: "Replace" }).click();
  await untilFocused(card.getByLabel("New API key"));
  await card.getByLabel("New API key").fill("sk-ant-test-9876543210fedcba");
  await card.getByRole("button", { name: "Save" }).first().click();
  await card.getByText("••••••••dcba").waitFor();

  await card.getByRole("button", { name: "Remove" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Remove key" }).click();
  await card.getByRole("button", { name: "Try the sandbox" }).click();
  await card.getByRole("button", { name: "Remove" }).waitFor();
  const { items } = await ada.call("getMyAgents");
  expect(items.find(({ provider }) => provider === "claude")?.key_configured).toBe(true);
  expect(visit.problems()).toEqual([]);
});

test("a late reply for a stored key does not close the field for the next one", async () => {
  const ada = await harness().person("ada");
  await using visit = await harness().visit(ada);
  const { page } = visit;
  const reply = await holdLastReply(page);
  await page.goto(`${harness().url}/agents`);
  const card = cardOf(page, agentOf(ada));
  await card.getByLabel("Your API key").fill("sk-ant-test-0123456789abcdef");
  await card.getByRole("button", { name: "Save" }).first().click();
  await card.getByRole("button", { name: "Replace" }).click();
  await card.getByLabel("New API key").fill("sk-ant-test-9876543210fedcba");
  await reply.release();
  await card.getByRole("button", { name: "Save" }).first().click();
  await card.getByText("••••••••dcba").waitFor();
  expect(visit.problems()).toEqual([]);
});

test("name, model, instructions and limits are saved", async () => {
  const ada = await harness().person("ada");
  await using visit = await harness().visit(ada, { path: "/agents" });
  const { page } = visit;
  const card = cardOf(page, agentOf(ada));
  await card.getByRole("button", { name: "Edit" }).click();
  const editor = page.getByRole("dialog", { name: "Edit Claude" });
  await editor.getByLabel("Name", { exact: true }).fill("Scout");
  await editor.getByLabel("Instructions").fill("Be brief.");
  await editor.getByText("9 of 8,000 characters").waitFor();
  await editor.getByText("Everyone in the conversation").click();
  await editor.getByLabel("Answers a minute").fill("5");
  await editor.getByRole("button", { name: "Save" }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.getByRole("heading", { name: "Scout" }).waitFor();
  const { items } = await ada.call("getMyAgents");
  expect(items.find(({ provider }) => provider === "claude")).toMatchObject({
    display_name: "Scout",
    instructions: "Be brief.",
    limits: { spenders: "participants", turns_per_minute: 5 },
  });
  expect(visit.problems()).toEqual([]);
});

test("an invalid key is refused beside its field, and an unusual one needs confirmation", async () => {
  const ada = await harness().person("ada");
  await using visit = await harness().visit(ada, { path: "/agents" });
  const { page } = visit;
  const card = cardOf(page, agentOf(ada));
  const field = card.getByLabel("Your API key");
  const save = card.getByRole("button", { name: "Save" }).first();
  await field.fill("two words");
  await save.click();
  await card.getByRole("alert").getByText("one line without spaces").waitFor();
  expect(await hasFocus(field)).toBe(true);

  await field.fill("sk-proj-0123456789abcdef");
  expect(await card.getByRole("alert").count()).toBe(0);
  await save.click();
  await card.getByText("usually begin with «sk-ant-»").waitFor();
  expect((await ada.call("getMyAgents")).items.some(({ key_configured }) => key_configured)).toBe(
    false,
  );
  await card.getByRole("button", { name: "Save anyway" }).click();
  await card.getByText("••••••••cdef").waitFor();
  expect(visit.problems()).toEqual([]);
});

test("a sandbox key is tested before and after it is stored, and the result names the sandbox", async () => {
  const ada = await harness().person("ada");
  await using visit = await harness().visit(ada, { path: "/agents" });
  const { page } = visit;
  const card = cardOf(page, agentOf(ada));
  await card.getByLabel("Your API key").fill(' export ANTHROPIC_API_KEY="sandbox-typed" ');
  await card.getByRole("button", { name: "Test this key" }).click();
  await card.getByRole("status").getByText("the sandbox model answered").waitFor();
  await card.getByRole("button", { name: "Save" }).first().click();
  await card.getByText("••••••••yped").waitFor();
  await untilFocused(card.getByRole("heading", { name: "API key" }));
  const test = card.getByRole("button", { name: "Test the key" });
  await test.press("Enter");
  await card.getByRole("status").getByText("the sandbox model answered").waitFor();
  expect(await hasFocus(test)).toBe(true);
  expect(visit.problems()).toEqual([]);
});

test("an agent that answers with the sandbox says so until a key is stored", async () => {
  const ada = await harness().person("ada");
  await using visit = await harness().visit(ada);
  const { page } = visit;
  await page.getByRole("button", { name: "Try your agent now" }).click();
  await composer(page).waitFor();
  await page.goto(`${harness().url}/agents`);
  const [{ model = "" } = {}] = (await ada.call("getMyAgents")).items;
  const card = cardOf(page, agentOf(ada));
  await card.getByText("Sandbox, until you store a key").waitFor();
  await card.getByText("Sandbox", { exact: true }).waitFor();
  expect(await card.getByText(model).count()).toBe(0);
  expect(await page.getByText("Sandbox, until").count()).toBe(1);

  await card.getByRole("button", { name: "Use your own key" }).click();
  await card.getByLabel("New API key").fill("sk-ant-test-0123456789abcdef");
  await card.getByRole("button", { name: "Save" }).first().click();
  await card.getByText("••••••••cdef").waitFor();
  await card.getByText(model).waitFor();
  expect(visit.problems()).toEqual([]);
});

test("the error of a field at the lower end of the editor is visible, and the field is marked", async () => {
  const ada = await harness().person("ada");
  const viewport = { width: 1440, height: 900 };
  await using visit = await harness().visit(ada, { path: "/agents", viewport });
  const { page } = visit;
  await cardOf(page, agentOf(ada)).getByRole("button", { name: "Edit" }).click();
  const editor = page.getByRole("dialog", { name: "Edit Claude" });
  const field = editor.getByLabel("Tokens a day", { exact: true });
  const save = editor.getByRole("button", { name: "Save" });
  const error = editor.getByRole("alert").getByText("At least 0.");
  await field.fill("-5");
  for (let attempt = 0; attempt < 2; attempt++) {
    await field.evaluate((each) => each.scrollIntoView({ block: "end" }));
    await save.click();
    const note = await error.elementHandle();
    await page.waitForFunction((each) => {
      const { left, bottom = 0 } = each?.getBoundingClientRect() ?? {};
      return each?.contains(document.elementFromPoint((left ?? 0) + 1, bottom - 1));
    }, note);
  }
  expect(await hasFocus(field)).toBe(true);
  const color = (of: Locator, name: "color" | "outlineColor") =>
    of.evaluate((each, property) => getComputedStyle(each)[property], name);
  expect(await color(field, "outlineColor")).toBe(await color(error, "color"));
  expect(visit.problems()).toEqual([]);
});

test("the button under a failed turn opens the field that solves the problem", async () => {
  const ada = await harness().person("ada");
  const focused = (label: string) =>
    page.waitForFunction(
      (name) => (document.activeElement as HTMLInputElement)?.labels?.[0]?.textContent === name,
      label,
    );
  const chat = await ada.call("startChat", { usernames: [agentOf(ada, "gpt")] });
  await using visit = await harness().visit(ada, { path: `/c/${chat.id}` });
  const { page } = visit;
  const card = cardOf(page, agentOf(ada, "gpt"));
  await write(page, "Are you there?");
  await page.getByRole("button", { name: "Set a key" }).click();
  await focused("Your API key");
  await page.keyboard.type("sandbox-typed");
  await page.keyboard.press("Enter");
  await card.getByText("••••••••yped").waitFor();

  await goBack(page);
  await write(page, "fail key");
  await page.getByRole("button", { name: "Set a key" }).click();
  await focused("New API key");
  expect(await hasFocus(card.getByLabel("New API key"))).toBe(true);

  await ada.call("setAgentLimits", { provider: "gpt", turns_per_minute: 0 });
  await goBack(page);
  await write(page, "Once more");
  await page.getByRole("button", { name: "Change the limits" }).click();
  await focused("Answers a minute");

  await ada.call("setAgentLimits", {
    provider: "gpt",
    turns_per_minute: null,
    chat_daily_tokens: 1,
  });
  // The first «back» closes the editor.
  await goBack(page);
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await goBack(page);
  await write(page, "And again");
  const refused = message(page, "tokens a day in this conversation");
  await refused.getByRole("button", { name: "Change the limits" }).click();
  await focused("Tokens a day in each conversation");
  expect(visit.problems()).toEqual([]);
});

test("a conversation that is too long for the model leads to the model, or to a new conversation", async () => {
  const { ada, path } = await agentChat(harness());
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  await write(page, "fail context");
  const failed = message(page, "too long for this model");
  await failed.getByRole("button", { name: "Choose a model" }).click();
  const editor = page.getByRole("dialog", { name: "Edit Claude" });
  await untilFocused(editor.getByLabel("Model"));
  await page.keyboard.press("Escape");
  await goBack(page);
  await failed.getByRole("button", { name: "Start a new one" }).click();
  await failed.waitFor({ state: "detached" });
  await untilFocused(composer(page));
  expect(page.url()).not.toEndWith(path);
  await write(page, "Hello again");
  await message(page, "I am the built-in sandbox").waitFor();
  expect(visit.problems()).toEqual([]);
});

test("the address of a field unfolds a card that was folded", async () => {
  const { ada } = await agentChat(harness());
  await using visit = await harness().visit(ada, { path: "/agents" });
  const { page } = visit;
  const card = cardOf(page, agentOf(ada));
  await card.getByRole("button", { name: "Hide details of Claude" }).click();
  await page.evaluate(() => {
    location.hash = "key-claude";
  });
  await untilFocused(card.getByLabel("New API key"));
  expect(visit.problems()).toEqual([]);
});

test("an invalid limit is refused beside its field", async () => {
  const ada = await harness().person("ada");
  await using visit = await harness().visit(ada, { path: "/agents#daily_tokens-claude" });
  const { page } = visit;
  const editor = page.getByRole("dialog", { name: "Edit Claude" });
  const field = editor.getByLabel("Answers a minute");
  await field.fill("-3");
  await editor.getByRole("button", { name: "Save" }).click();
  await editor.getByRole("alert").getByText("At least 0").waitFor();
  expect(await hasFocus(field)).toBe(true);
  expect(visit.problems()).toEqual([]);
});

test("a turn that failed for lack of a key can be repeated after a key is set", async () => {
  const ada = await harness().person("ada");
  const chat = await ada.call("startChat", { usernames: [agentOf(ada)] });
  await using visit = await harness().visit(ada, { path: `/c/${chat.id}` });
  const { page } = visit;
  await page.getByText("It has no key yet").waitFor();
  await write(page, "Are you there?");
  await page.getByRole("button", { name: "Set a key" }).click();
  await page.getByRole("heading", { name: "My agents" }).waitFor();
  const card = cardOf(page, agentOf(ada));
  await card.getByRole("button", { name: "Try the sandbox" }).click();
  await card.getByRole("button", { name: "Open conversation" }).click();
  await page.getByRole("button", { name: "Try again" }).click();
  await message(page, "I am the built-in sandbox").waitFor();
  expect(visit.problems()).toEqual([]);
});

test("a failed turn offers «Try again» only once", async () => {
  const { ada, path } = await agentChat(harness());
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  await write(page, "fail midway");
  const answer = page.getByRole("article").last();
  await answer.getByRole("button", { name: "Try again" }).waitFor();
  expect((await answer.innerText()).match(/Try again/g)).toHaveLength(1);
});

test("a limit that is used up addresses the owner, and its buttons go once the turn is repeated", async () => {
  const { ada, path } = await agentChat(harness());
  const setLimit = (daily_tokens: number | null) =>
    ada.call("setAgentLimits", { provider: "claude", daily_tokens });
  await setLimit(10);
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  await write(page, "Are you there?");
  const failed = message(page, "This agent's budget of 10 tokens");
  await failed.getByRole("button", { name: "Change the limits" }).waitFor();
  expect(await failed.innerText()).toContain("You can raise it.");
  await setLimit(null);
  await failed.getByRole("button", { name: "Try again" }).click();
  await message(page, "I am the built-in sandbox").waitFor();
  await message(page, "Failed answer, 1 of 2").getByRole("button", { name: "Show" }).press("Enter");
  await failed.getByText("You can raise it.").waitFor();
  for (const name of ["Try again", "Change the limits"]) {
    expect(await failed.getByRole("button", { name }).count()).toBe(0);
  }
  expect(visit.problems()).toEqual([]);
});

test("«Try the sandbox» under a message without an answer gets the answer", async () => {
  const ada = await harness().person("ada");
  const chat = await ada.call("startChat", { usernames: [agentOf(ada)] });
  await using visit = await harness().visit(ada, { path: `/c/${chat.id}` });
  const { page } = visit;
  await page.getByText("It has no key yet").waitFor();
  await page.getByRole("heading", { level: 1 }).locator("..").getByText("has no API key").waitFor();
  await write(page, "Are you there?");
  const row = page.getByRole("navigation", { name: "Conversation list" }).getByRole("link");
  await row.filter({ hasText: "It has no API key yet." }).waitFor();
  const button = page.getByRole("button", { name: "Try the sandbox" });
  await button.press("Enter");
  await message(page, "I am the built-in sandbox").waitFor();
  await untilFocused(page.getByRole("article").filter({ hasText: "Failed answer" }));
  // Text typed after the button press goes into the composer.
  await page.keyboard.type("buy");
  await page.keyboard.press("Enter");
  await page.getByRole("region", { name: "Buy 10 AAPL" }).waitFor();
  expect(visit.problems()).toEqual([]);
});

test("a receipt that is opened while the answer streams shows how it ended", async () => {
  const ada = await slowPerson("ada");
  const chat = await ada.call("startChat", { usernames: [agentOf(ada)] });
  await using visit = await harness().visit(ada, { path: `/c/${chat.id}`, url: ada.url });
  const { page } = visit;
  await write(page, "slow");
  const answer = message(page, "I am in no hurry");
  await answer.waitFor();
  await pressOn(answer, "More");
  await page.getByRole("menuitem", { name: "Receipt" }).click();
  const receipt = page.getByRole("dialog", { name: "Receipt" });
  await receipt.getByText("streaming").waitFor();
  await ada.call("stopChatAgents", { chat_id: chat.id });
  await receipt.getByText("stopped").waitFor();
  expect(visit.problems()).toEqual([]);
});

test("the owner sees the receipt of a turn and a chart of the usage", async () => {
  const { ada, path } = await agentChat(harness());
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  await composer(page).waitFor();
  await write(page, "help");
  const answer = message(page, "Say one of these words");
  await answer.getByText("store a real API key").waitFor();
  await pressOn(answer, "More");
  await page.getByRole("menuitem", { name: "Receipt" }).click();
  const receipt = page.getByRole("dialog", { name: "Receipt" });
  await receipt.getByText("Tokens out").waitFor();
  await receipt.getByText("complete").waitFor();
  await page.keyboard.press("Escape");
  await receipt.waitFor({ state: "detached" });

  await page.getByRole("button", { name: "My agents" }).click();
  await page
    .getByRole("img", { name: /Tokens by day/ })
    .first()
    .waitFor();
  await page.getByText("1 answer").waitFor();
  expect(visit.problems()).toEqual([]);
});
