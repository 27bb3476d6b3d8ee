import { expect } from "bun:test";
import { agentOf } from "@parley/testkit/client.ts";
import type { Page } from "playwright-core";
import { expectNoViolations } from "./axe.ts";
import {
  composer,
  giveSandboxKey,
  goBack,
  hasFocus,
  message,
  PHONE,
  sharedHarness,
  showsBriefly,
  test,
  untilFocused,
  write,
} from "./support.ts";

const harness = sharedHarness();

const list = (page: Page) => page.getByRole("navigation", { name: "Conversation list" });

test("an agent is created, edited and deleted, and other windows show it without a reload", async () => {
  const ada = await harness().person("ada");
  await giveSandboxKey(ada);
  await using visit = await harness().visit(ada, { path: "/agents" });
  await using other = await harness().visit(ada, { path: "/agents" });
  await other.page.getByRole("heading", { name: "Claude" }).waitFor();
  const { page } = visit;
  await page.getByRole("button", { name: "New agent" }).click();
  const creator = page.getByRole("dialog", { name: "New agent" });
  await creator.getByLabel("Name", { exact: true }).fill("Research helper");
  expect(await creator.getByLabel("Handle").inputValue()).toBe("research-helper");
  await creator.getByText(`@${ada.username}:research-helper`).waitFor();
  // The sandbox lists one model.
  await creator.locator("datalist option[value=sandbox]").waitFor({ state: "attached" });
  await creator.getByLabel("Model", { exact: true }).fill("my-own-model");
  await creator.getByLabel("Instructions").fill("Cite your sources.");
  await creator.getByText("Only me").click();
  await showsBriefly(page.getByText("Research helper is created."), () =>
    creator.getByRole("button", { name: "Create agent" }).click(),
  );
  await creator.waitFor({ state: "detached" });
  await page.getByRole("heading", { name: "Research helper" }).waitFor();
  await page.waitForFunction(() => {
    const heading = [...document.querySelectorAll("h2")].find(
      ({ textContent }) => textContent === "Research helper",
    );
    const { top = -1, bottom = 0 } = heading?.getBoundingClientRect() ?? {};
    return top >= 0 && bottom <= innerHeight;
  });
  await other.page.getByRole("heading", { name: "Research helper" }).waitFor();
  const username = agentOf(ada, "research-helper");
  const stored = async () =>
    (await ada.call("getMyAgents")).items.find((each) => each.username === username);
  expect(await stored()).toMatchObject({
    provider: "claude",
    model: "my-own-model",
    instructions: "Cite your sources.",
    limits: { spenders: "owner", daily_tokens: 2_000_000 },
  });

  const card = page.getByRole("region", { name: "Research helper" });
  await card.getByRole("button", { name: "Edit" }).click();
  const editor = page.getByRole("dialog", { name: "Edit Research helper" });
  await editor.getByLabel("Provider").selectOption("gpt");
  expect(await editor.getByLabel("Model", { exact: true }).inputValue()).toBe("");
  await editor.getByLabel("Name", { exact: true }).fill("Scholar");
  await editor.getByRole("button", { name: "Save" }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await other.page.getByRole("heading", { name: "Scholar" }).waitFor();
  expect(await stored()).toMatchObject({ provider: "gpt", display_name: "Scholar" });

  const scholar = page.getByRole("region", { name: "Scholar" });
  await scholar.getByRole("button", { name: "Edit" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete", exact: true }).click();
  await page.getByRole("button", { name: "Delete agent" }).click();
  await scholar.waitFor({ state: "detached" });
  await untilFocused(page.getByRole("heading", { name: "My agents" }));
  await other.page.getByRole("region", { name: "Scholar" }).waitFor({ state: "detached" });
  expect(await stored()).toBeUndefined();
  expect([...visit.problems(), ...other.problems()]).toEqual([]);
});

test("more than two agents are folded to rows, which unfold one by one and at an address of a field", async () => {
  const ada = await harness().person("ada");
  await ada.call("createAgent", { name: "writer", kind: "external" });
  await using visit = await harness().visit(ada, { path: "/agents" });
  const { page } = visit;
  const card = (name: string) => page.getByRole("region", { name, exact: true });
  const usage = (name: string) => card(name).getByRole("heading", { name: "Usage" });
  await card("writer").getByRole("button", { name: "Show details of writer" }).click();
  await usage("writer").waitFor();
  expect(await usage("Claude").count()).toBe(0);
  await card("writer").getByRole("button", { name: "Hide details of writer" }).click();
  await usage("writer").waitFor({ state: "detached" });
  await page.goto(`${harness().url}/agents#key-claude`);
  await usage("Claude").waitFor();
  expect(await usage("GPT").count()).toBe(0);
  await expectNoViolations(page);
  expect(visit.problems()).toEqual([]);
});

test("wrong and taken handles are refused beside their field", async () => {
  const ada = await harness().person("ada");
  await ada.call("createAgent", { name: "writer", kind: "external" });
  await using visit = await harness().visit(ada, { path: "/agents" });
  const { page } = visit;
  await page.getByText("Your program · not connected").waitFor();
  await page.getByRole("button", { name: "New agent" }).click();
  const editor = page.getByRole("dialog", { name: "New agent" });
  const handle = editor.getByLabel("Handle");
  const create = editor.getByRole("button", { name: "Create agent" });
  const name = editor.getByLabel("Name", { exact: true });
  await untilFocused(name);
  await create.click();
  await editor.getByText("Please fill this in.").nth(1).waitFor();
  // The handle follows the name.
  await name.fill("Writer");
  await editor.getByText("Please fill this in.").first().waitFor({ state: "detached" });
  await handle.fill("9 lives");
  await create.click();
  await editor.getByText("Lower-case letters, digits").waitFor();
  expect(await hasFocus(handle)).toBe(true);
  await handle.fill("writer");
  await create.click();
  await editor.getByRole("alert").getByText("You have used this handle before").waitFor();
  expect(await hasFocus(handle)).toBe(true);
  // The browser reports the 409 of the refused call, if it was made over HTTP.
  expect(visit.problems().filter((problem) => !/409/.test(problem))).toEqual([]);
});

test("a new agent whose limits were not saved gets them with a second «Create agent»", async () => {
  const ada = await harness().person("ada");
  await using visit = await harness().visit(ada);
  const { page } = visit;
  const connected = Promise.withResolvers<void>();
  let isRefused = false;
  await page.routeWebSocket("**", (socket) => {
    const server = socket.connectToServer();
    server.onMessage((data) => {
      socket.send(data);
      connected.resolve();
    });
    socket.onMessage((data) => {
      const frame = JSON.parse(String(data));
      if (frame.method !== "setAgentLimits" || isRefused) return server.send(data);
      isRefused = true;
      frame.params.agent_username = "nobody:nothing";
      server.send(JSON.stringify(frame));
    });
  });
  await page.goto(`${harness().url}/agents`);
  await connected.promise;
  await page.getByRole("button", { name: "New agent" }).click();
  const editor = page.getByRole("dialog", { name: "New agent" });
  const create = editor.getByRole("button", { name: "Create agent" });
  await editor.getByLabel("Name", { exact: true }).fill("Writer");
  await editor.getByText("Only me").click();
  await create.click();
  await editor.getByRole("alert").waitFor();
  await create.click();
  await page.getByText("Writer is created.").waitFor();
  const { items } = await ada.call("getMyAgents");
  expect(items.find(({ name }) => name === "writer")?.limits.spenders).toBe("owner");
});

function editingClaude(page: Page) {
  const editor = page.getByRole("dialog", { name: "Edit Claude" });
  return {
    edit: page.getByRole("region", { name: "Claude" }).getByRole("button", { name: "Edit" }),
    editor,
    field: editor.getByLabel("Instructions"),
    question: page.getByRole("dialog", { name: "Discard your changes?" }),
  };
}

test("unsaved changes are not lost by Escape, «back» or a click beside the editor", async () => {
  const ada = await harness().person("ada");
  await using visit = await harness().visit(ada, { path: "/agents" });
  const { page } = visit;
  const { edit, editor, question, field } = editingClaude(page);
  await edit.click();
  await editor.waitFor();
  await page.keyboard.press("Escape");
  await editor.waitFor({ state: "detached" });

  await edit.click();
  await field.fill("Think twice.");
  for (const leave of [
    () => page.keyboard.press("Escape"),
    () => goBack(page),
    () => page.mouse.click(5, 5),
    () => goBack(page),
  ]) {
    await leave();
    await question.getByRole("button", { name: "Keep editing" }).click();
    await question.waitFor({ state: "detached" });
    expect(await field.inputValue()).toBe("Think twice.");
  }
  await editor.getByRole("button", { name: "Cancel" }).click();
  await question.getByRole("button", { name: "Discard" }).click();
  await editor.waitFor({ state: "detached" });
  expect((await ada.call("getMyAgents")).items[0]?.instructions).toBeNull();
  expect(visit.problems()).toEqual([]);
});

test("Escape asks about unsaved changes again and again, and the editor opens afterwards", async () => {
  const ada = await harness().person("ada");
  await using visit = await harness().visit(ada, { path: "/agents" });
  const { page } = visit;
  const { edit, editor, question, field } = editingClaude(page);
  await edit.click();
  await field.fill("Think twice.");
  for (let round = 0; round < 3; round++) {
    await page.keyboard.press("Escape");
    await question.waitFor();
    await page.keyboard.press("Escape");
    await question.waitFor({ state: "detached" });
    expect(await field.inputValue()).toBe("Think twice.");
  }
  // A browser may close a dialog without asking the page, such as on the gesture «back» of a phone.
  await page.evaluate(() => document.querySelector("dialog")?.close());
  await question.getByRole("button", { name: "Keep editing" }).click();
  await question.waitFor({ state: "detached" });
  expect(await field.inputValue()).toBe("Think twice.");

  await page.keyboard.press("Escape");
  await question.getByRole("button", { name: "Discard" }).click();
  await editor.waitFor({ state: "detached" });
  await edit.click();
  await editor.waitFor();
  await page.evaluate(() => document.querySelector("dialog")?.close());
  await page.locator("dialog").waitFor({ state: "detached" });
  await edit.click();
  await editor.waitFor();
  expect(visit.problems()).toEqual([]);
});

test("new chats with an agent start from the header, the sidebar and the switcher, and are told apart", async () => {
  const ada = await harness().person("ada");
  await giveSandboxKey(ada);
  const first = await ada.call("startChat", { usernames: [agentOf(ada)] });
  await using visit = await harness().visit(ada, { path: `/c/${first.id}` });
  const { page } = visit;
  await composer(page).waitFor();
  await write(page, "Where do parrots live?");
  await message(page, "built-in sandbox").waitFor();

  await page.getByRole("button", { name: "New chat", exact: true }).click();
  await page.getByRole("heading", { name: "New chat", level: 1 }).waitFor();
  await list(page)
    .getByRole("link", { name: /Where do parrots live\?/ })
    .waitFor();
  // An empty chat is used again.
  const path = new URL(page.url()).pathname;
  await page.getByRole("button", { name: "New chat with an agent" }).click();
  await page.getByRole("menuitem", { name: "Claude" }).click();
  expect(new URL(page.url()).pathname).toBe(path);
  await write(page, "And penguins?");
  await page.getByRole("heading", { name: "And penguins?", level: 1 }).waitFor();

  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: /^Search/ }).fill("new chat");
  await page.getByRole("option", { name: "New chat with Claude" }).click();
  await page.getByRole("heading", { name: "New chat", level: 1 }).waitFor();
  await page.getByRole("button", { name: "Details" }).click();
  const details = page.getByRole("complementary", { name: "Details" });
  await details.getByLabel("Title").fill("Birds");
  await details.getByRole("button", { name: "Save" }).click();
  await page.getByRole("heading", { name: "Birds", level: 1 }).waitFor();
  await details.getByRole("link", { name: /And penguins\?/ }).click();
  await page.getByRole("heading", { name: "And penguins?", level: 1 }).waitFor();
  const { items } = await ada.call("getChats", {});
  expect(items.map(({ title }) => title).sort()).toEqual(["Birds", null, null] as never);
  await list(page).getByRole("link", { name: /Birds/ }).waitFor();
  expect(visit.problems()).toEqual([]);
});

test("the editor fits on a phone, and axe finds no violations in it", async () => {
  const ada = await harness().person("ada");
  await giveSandboxKey(ada);
  await using visit = await harness().visit(ada, { path: "/agents", ...PHONE });
  const { page } = visit;
  await page.getByRole("button", { name: "New agent" }).tap();
  const editor = page.getByRole("dialog", { name: "New agent" });
  await editor.getByLabel("Name", { exact: true }).fill("Research helper");
  await expectNoViolations(page);
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  expect(width).toBeLessThanOrEqual(360);
  await editor.getByRole("button", { name: "Create agent" }).tap();
  await page.getByRole("heading", { name: "Research helper" }).waitFor();
  await expectNoViolations(page);
  expect(visit.problems()).toEqual([]);
});
