import { expect } from "bun:test";
import { agentOf, signUp } from "@parley/testkit/client.ts";
import { noRates, startServer } from "@parley/testkit/server.ts";
import { ToolServer, tool } from "@parley/testkit/tool-server.ts";
import type { Page } from "playwright-core";
import { startProtectedServer } from "../tool-issuer.ts";
import { expectNoViolations } from "./axe.ts";
import {
  goBack,
  hasFocus,
  PHONE,
  sharedHarness,
  showsBriefly,
  test,
  untilFocused,
} from "./support.ts";
import { officeTools, toolServer } from "./tool-groups.ts";

const harness = sharedHarness();
const openGroup = toolServer();

const item = (page: Page, name: string) => page.getByRole("listitem", { name, exact: true });

test("a tool server is added with its token, refreshed and removed", async () => {
  await using group = await openGroup();
  await using tools = new ToolServer();
  tools.token = "secret";
  await using visit = await harness().visit(group.bob, {
    url: group.url,
    path: "/settings/tool-servers",
  });
  const { page } = visit;
  await page.getByRole("button", { name: "Add a tool server" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: "Add" }).click();
  await dialog.getByRole("alert").first().waitFor();
  await expectNoViolations(page);
  await dialog.getByLabel("Name").fill("Wiki");
  await dialog.getByLabel("Address").fill(tools.url);
  await dialog.getByLabel("Token").fill("wrong");
  await dialog.getByRole("button", { name: "Add" }).click();
  await item(page, "Wiki").getByText("Needs a sign-in or another token").waitFor();

  tools.token = "other";
  await item(page, "Wiki").getByRole("button", { name: "Change the token" }).click();
  await page.getByRole("dialog", { name: "Change Wiki" }).getByLabel("Token").fill("another");
  await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await item(page, "Wiki").getByText("Otherwise it needs a token that it accepts.").waitFor();
  await expectNoViolations(page);
  tools.token = "another";
  await item(page, "Wiki").getByRole("button", { name: "Refresh" }).click();
  await item(page, "Wiki").getByText("Ready").waitFor();
  await item(page, "Wiki").getByText("1 tool").click();
  await item(page, "Wiki").getByText("The tool echo.").waitFor();
  await expectNoViolations(page);

  await item(page, "Wiki").getByRole("button", { name: "Remove" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Remove server" }).click();
  await item(page, "Wiki").waitFor({ state: "detached" });
  expect((await group.bob.call("getToolServers")).items).toEqual([]);
  expect(visit.problems()).toEqual([]);
});

test("name, address and token of a tool server are changed, while agents keep its tools", async () => {
  await using group = await openGroup("always");
  const { alice, office } = group;
  await using visit = await harness().visit(alice, {
    url: group.url,
    path: "/settings/tool-servers",
  });
  const { page } = visit;
  const change = async (name: string, fields: Record<string, string>) => {
    await item(page, name).getByRole("button", { name: "Change" }).click();
    const dialog = page.getByRole("dialog", { name: `Change ${name}` });
    for (const [label, text] of Object.entries(fields)) await dialog.getByLabel(label).fill(text);
    await expectNoViolations(page);
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.waitFor({ state: "detached" });
  };
  await change("office", { Name: "Bureau" });
  office.token = "new-secret";
  await change("Bureau", { Token: "new-secret" });
  await item(page, "Bureau").getByText("Ready").waitFor();
  expect(office.received.at(-1)?.headers.get("authorization")).toBe("Bearer new-secret");
  await using moved = new ToolServer();
  moved.tools = office.tools;
  await change("Bureau", { Address: moved.url });
  await item(page, "Bureau").getByText(moved.url).waitFor();
  await item(page, "Bureau").getByText("Ready").waitFor();
  const [server] = (await alice.call("getToolServers")).items;
  expect(server).toMatchObject({ name: "Bureau", url: moved.url, status: "ready" });
  const { items } = await alice.call("getMyAgents");
  expect(items.find(({ username }) => username === agentOf(alice))?.tools).toHaveLength(2);
  expect(visit.problems()).toEqual([]);
});

test("a tool server of the operator that cannot be reached is named, with what to do", async () => {
  const PARLEY_TOOL_SERVERS = JSON.stringify([{ name: "Weather", url: "http://127.0.0.1:1/mcp" }]);
  await using server = await startServer({ ...noRates, PARLEY_TOOL_SERVERS });
  const ada = await signUp(server.url, "ada");
  const options = { url: server.url, path: "/settings/tool-servers" };
  await using visit = await harness().visit(ada, options);
  const { page } = visit;
  const weather = item(page, "Weather");
  await weather.getByText("Cannot be reached").waitFor();
  await weather.getByText("Please tell the people who run this service.").waitFor();
  await expectNoViolations(page);
  await page.goto(`${server.url}/agents`);
  await page.getByRole("button", { name: "Choose tools" }).first().click();
  const unreached = page.getByRole("dialog").getByRole("region", { name: "Weather" });
  await unreached.getByText("Cannot be reached").waitFor();
  await unreached.getByText("Please tell the people who run this service.").waitFor();
  await expectNoViolations(page);
  expect(visit.problems()).toEqual([]);
});

test("a name that is taken and an address that is none are refused beside their fields", async () => {
  await using group = await openGroup();
  await using visit = await harness().visit(group.alice, {
    url: group.url,
    path: "/settings/tool-servers",
  });
  const { page } = visit;
  await page.getByRole("button", { name: "Add a tool server" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("office");
  await dialog.getByLabel("Address").fill("https://tools.example.com/mcp");
  await dialog.getByRole("button", { name: "Add" }).click();
  await dialog.getByRole("alert").waitFor();
  expect(await dialog.getByLabel("Name").getAttribute("aria-invalid")).toBe("true");
  await dialog.getByLabel("Name").fill("other");
  await dialog.getByLabel("Address").fill("ftp://tools.example.com");
  await dialog.getByRole("button", { name: "Add" }).click();
  await dialog.getByRole("alert").waitFor();
  expect(await dialog.getByLabel("Address").getAttribute("aria-invalid")).toBe("true");
});

test("tools are allowed one by one, and a changed tool stays marked until it is allowed again", async () => {
  await using group = await openGroup("always");
  const { alice, office } = group;
  const [server] = (await alice.call("getToolServers")).items;
  const [email, events] = officeTools;
  office.tools = [{ ...tool("send_email"), title: "Send email" }, ...(events ? [events] : [])];
  await alice.call("refreshToolServer", { server_id: server?.id ?? "" });
  const granted = async () => {
    const { items } = await alice.call("getMyAgents");
    const { tools = [] } = items.find(({ username }) => username === agentOf(alice)) ?? {};
    return Object.fromEntries(tools.map((each) => [each.tool, [each.policy, each.changed]]));
  };
  expect(await granted()).toEqual({
    [email?.name ?? ""]: ["always", true],
    find_events: ["always", false],
  });
  await using visit = await harness().visit(alice, { url: group.url, path: "/agents" });
  const { page } = visit;
  const agentCard = page.getByRole("region", { name: "Claude" });
  await agentCard.getByText("It may use 2 tools, and asks you first for 1 of them.").waitFor();
  await agentCard.getByText("1 tool changed since you allowed it: asks again.").waitFor();
  await agentCard.getByRole("button", { name: "Choose tools" }).click();
  const card = page.getByRole("dialog", { name: "Tools of Claude" });
  await card.getByText("Changed since you allowed it: asks again.").waitFor();
  await card.getByText("Every call waits for your approval.").waitFor();
  await expectNoViolations(page);
  await card.getByLabel("Find events of office").selectOption("In my own chats");
  await page.waitForFunction(() => !document.querySelector("select[aria-busy=true]"));
  expect(await granted()).toEqual({
    send_email: ["always", true],
    find_events: ["direct", false],
  });
  await card.getByText("Changed since you allowed it: asks again.").waitFor();
  await page.reload();
  await agentCard.getByText("1 tool changed since you allowed it: asks again.").waitFor();
  await agentCard.getByRole("button", { name: "Choose tools" }).click();
  await card.getByLabel("Find events of office").selectOption("Not allowed");
  await page.waitForFunction(() => !document.querySelector("select[aria-busy=true]"));
  await card.getByRole("button", { name: "Allow again" }).click();
  await card.getByText("Changed since").waitFor({ state: "detached" });
  expect(await hasFocus(card.getByLabel("Send email of office"))).toBe(true);
  expect(await granted()).toEqual({ send_email: ["always", false] });
  expect(visit.problems()).toEqual([]);
});

test("a long description of a tool can be read in full", async () => {
  await using group = await openGroup();
  const { alice, office } = group;
  const end = "It ends here.";
  office.tools = [tool("long", `${"It does this and that. ".repeat(40)}${end}`), tool("short")];
  const [server] = (await alice.call("getToolServers")).items;
  await alice.call("refreshToolServer", { server_id: server?.id ?? "" });
  const height = (page: Page) =>
    page.getByText(end).evaluate(({ clientHeight, scrollHeight }) => scrollHeight - clientHeight);
  for (const path of ["/settings/tool-servers", "/agents"]) {
    await using visit = await harness().visit(alice, { url: group.url, path });
    const { page } = visit;
    const opener =
      path === "/settings/tool-servers"
        ? page.locator("summary", { hasText: "2 tools" })
        : page.getByRole("button", { name: "Choose tools" }).first();
    await opener.click();
    const more = page.getByRole("button", { name: "Show more about long" });
    await more.waitFor();
    expect(await height(page)).toBeGreaterThan(0);
    expect(await page.getByRole("button", { name: /Show more/ }).count()).toBe(1);
    await more.click();
    await page.getByRole("button", { name: "Show less about long" }).waitFor();
    expect(await height(page)).toBe(0);
    await expectNoViolations(page);
    expect(visit.problems()).toEqual([]);
  }
});

test("a tool that is chosen by keys keeps the focus, and the last choice counts", async () => {
  await using group = await openGroup();
  const { alice } = group;
  await using visit = await harness().visit(alice, { url: group.url, path: "/agents" });
  const { page } = visit;
  const claude = page.getByRole("region", { name: "Claude" });
  await claude.getByRole("button", { name: "Choose tools" }).click();
  const select = page.getByLabel("Send email of office");
  await select.focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  expect(await select.inputValue()).toBe("always");
  await page.waitForFunction(() => !document.querySelector("select[aria-busy=true]"));
  expect(await hasFocus(select)).toBe(true);
  const { items } = await alice.call("getMyAgents");
  const agent = items.find(({ username }) => username === agentOf(alice));
  expect(agent?.tools).toContainEqual(expect.objectContaining({ policy: "always" }));
  expect(visit.problems()).toEqual([]);
});

test("the focus stays on a button that was pressed, and moves to the heading of what was removed", async () => {
  await using group = await openGroup();
  await using visit = await harness().visit(group.alice, {
    url: group.url,
    path: "/settings/tool-servers",
  });
  const { page } = visit;
  const refresh = item(page, "office").getByRole("button", { name: "Refresh" });
  const count = group.office.got("tools/list").length;
  await refresh.press("Enter");
  await group.office.has("tools/list", count + 1);
  await page.waitForFunction(() => !document.querySelector("[aria-busy=true]"));
  expect(await hasFocus(refresh)).toBe(true);
  await item(page, "office").getByRole("button", { name: "Remove" }).press("Enter");
  await page.getByRole("button", { name: "Remove server" }).press("Enter");
  await item(page, "office").waitFor({ state: "detached" });
  await untilFocused(page.getByRole("heading", { name: "Tool servers" }));
  expect(visit.problems()).toEqual([]);
});

test("tool servers and tools fit on a phone", async () => {
  await using group = await openGroup();
  const options = { url: group.url, ...PHONE };
  for (const path of ["/settings/tool-servers", "/agents"]) {
    await using visit = await harness().visit(group.alice, { ...options, path });
    const { page } = visit;
    const opener =
      path === "/settings/tool-servers"
        ? page.locator("summary", { hasText: "2 tools" })
        : page.getByRole("button", { name: "Choose tools" });
    await opener.first().tap();
    await page.getByText("Searches your calendar.").first().waitFor();
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(
      PHONE.viewport.width,
    );
    await expectNoViolations(page);
  }
});

test("a server with its own sign-in is used after it, in another window", async () => {
  await using group = await openGroup();
  await using made = await startProtectedServer();
  await group.bob.call("addToolServer", { name: "Wiki", url: made.tools.url });
  const options = { url: group.url, path: "/settings/tool-servers", networkFails: true };
  await using visit = await harness().visit(group.bob, options);
  const { page } = visit;
  // The pages of the issuer ask for fonts that cannot be loaded.
  await page.context().route(/googleapis/, (route) => route.abort());
  const opened = page.context().waitForEvent("page");
  await item(page, "Wiki").getByRole("button", { name: "Sign in to Wiki" }).click();
  const other = await opened;
  await other.locator("input[name=login]").fill("bob");
  await other.locator("input[name=password]").fill("any");
  await other.locator("[type=submit]").click();
  await other.getByRole("button", { name: "Continue" }).click();
  await other.getByText("Wiki is authorized.").waitFor();
  await item(page, "Wiki").getByText("Ready").waitFor();
  expect(await other.evaluate(() => window.opener)).toBeNull();
  expect(visit.problems()).toEqual([]);
});

test("the program of an external agent gets a token that is shown once, and connects", async () => {
  await using group = await openGroup();
  const { alice } = group;
  await alice.call("createAgent", { name: "herald", kind: "external", display_name: "Herald" });
  await using visit = await harness().visit(alice, { url: group.url, path: "/agents" });
  const { page } = visit;
  const card = page.getByRole("region", { name: "Herald" });
  await card.getByRole("button", { name: "Show details" }).click();
  await card.getByText("Not connected. Start your program").waitFor();
  await card.getByRole("button", { name: "New token" }).click();
  const dialog = page.getByRole("dialog", { name: /new token/i });
  await dialog.getByLabel("Name").fill("Laptop");
  await dialog.getByRole("button", { name: "Create" }).click();
  const token = (await dialog.getByText(/^pla_/).textContent()) ?? "";
  await dialog.getByText("createAgent", { exact: false }).first().waitFor();
  const copy = dialog.getByRole("button", { name: /^Cop(y|ied)$/ }).first();
  expect(await hasFocus(copy)).toBe(true);
  await expectNoViolations(page);
  const question = page.getByRole("dialog", { name: "Close without the token?" });
  for (const leave of [
    () => page.keyboard.press("Escape"),
    () => page.mouse.click(5, 5),
    () => goBack(page),
  ]) {
    await leave();
    await question.getByRole("button", { name: "Show the token" }).click();
    await question.waitFor({ state: "detached" });
    await dialog.getByText(token).waitFor();
  }
  await showsBriefly(dialog.getByText("Copied"), () => copy.click());
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  await card.getByText("Laptop").waitFor();
  expect(await page.getByText(token).count()).toBe(0);

  const claim = () =>
    fetch(`${group.url}/api/claimTurn`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: '{"wait_seconds":1}',
    });
  expect((await claim()).status).toBe(200);
  await card.getByText("Connected. It answers.").waitFor();
  await card.getByRole("button", { name: "Revoke Laptop" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Revoke token" }).click();
  await card.getByText("Laptop").waitFor({ state: "detached" });
  await untilFocused(card.getByRole("heading", { name: "Program" }));
  expect((await claim()).status).toBe(401);
  expect(visit.problems()).toEqual([]);
});
