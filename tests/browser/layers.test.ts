import { expect } from "bun:test";
import { agentOf, groupOf } from "@parley/testkit/client.ts";
import type { Page } from "playwright-core";
import { composer, giveSandboxKey, message, sharedHouse, test } from "./support.ts";

const house = sharedHouse();

const phone = { viewport: { width: 390, height: 760 }, hasTouch: true, isMobile: true };

const focusedLabel = (page: Page) =>
  page.evaluate(() => {
    const element = document.activeElement as HTMLInputElement | null;
    return element?.ariaLabel ?? element?.labels?.[0]?.textContent ?? element?.textContent ?? "";
  });

test("a dialog gives the focus to its first field, or to its safe answer", async () => {
  const [ada, bob] = await Promise.all([house().person("ada"), house().person("bob")]);
  const chat = await groupOf(ada, bob);
  await using visit = await house().visit(ada, { path: `/c/${chat.id}` });
  const { page } = visit;
  await page.getByRole("button", { name: "New conversation" }).click();
  await page.getByRole("dialog").waitFor();
  expect(await focusedLabel(page)).toBe("Find people and agents");
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });

  await page.keyboard.press("Control+k");
  await page.getByRole("dialog").waitFor();
  expect(await focusedLabel(page)).toMatch(/^Search/);
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });

  await page.getByRole("button", { name: "Members and agents" }).click();
  await page.getByRole("button", { name: "Leave group" }).click();
  await page.getByRole("dialog", { name: /^Leave/ }).waitFor();
  expect(await focusedLabel(page)).toBe("Stay");
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  expect(await focusedLabel(page)).toBe("Leave group");
  expect(visit.problems()).toEqual([]);
});

test("a message is deleted for oneself only after one was asked", async () => {
  const [ada, bob] = await Promise.all([house().person("ada"), house().person("bob")]);
  const chat = await groupOf(ada, bob);
  await bob.call("sendMessage", { chat_id: chat.id, content: "Keep me" });
  await using visit = await house().visit(ada, { path: `/c/${chat.id}` });
  const { page } = visit;
  const asked = page.getByRole("dialog", { name: "Delete for me?" });
  const choose = async () => {
    await message(page, "Keep me").hover();
    await message(page, "Keep me").getByRole("button", { name: "More" }).click();
    await page.getByRole("menuitem", { name: "Delete for me" }).click();
    await asked.waitFor();
  };
  await choose();
  expect(await focusedLabel(page)).toBe("Keep");
  await page.keyboard.press("Enter");
  await asked.waitFor({ state: "detached" });
  await choose();
  await asked.getByRole("button", { name: "Delete" }).click();
  await message(page, "Keep me").waitFor({ state: "detached" });
  expect(visit.problems()).toEqual([]);
});

test("back on a phone closes what is on top, one layer at a time, and only then leaves the page", async () => {
  const [ada, bob] = await Promise.all([house().person("ada"), house().person("bob")]);
  const chat = await groupOf(ada, bob);
  await using visit = await house().visit(ada, phone);
  const { page } = visit;
  await page.getByRole("link", { name: bob.username }).tap();
  await composer(page).waitFor();
  await page.getByRole("button", { name: "Members and agents" }).tap();
  await page.getByRole("button", { name: `Options for ${bob.username}` }).tap();
  const sheet = page.getByRole("menuitem", { name: "Remove from group" });
  await sheet.waitFor();

  await page.goBack();
  await sheet.waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Leave group" }).tap();
  await page.getByRole("dialog", { name: /^Leave/ }).waitFor();

  await page.goBack();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  expect(await page.getByRole("complementary", { name: "Details" }).isVisible()).toBe(true);

  await page.goBack();
  await page.getByRole("complementary", { name: "Details" }).waitFor({ state: "detached" });
  expect(new URL(page.url()).pathname).toBe(`/c/${chat.id}`);

  await page.goBack();
  await page.getByRole("link", { name: bob.username }).waitFor();
  expect(new URL(page.url()).pathname).toBe("/");
  expect(visit.problems()).toEqual([]);
});

test("a layer that is closed by itself, or left by a choice, leaves no step behind", async () => {
  const [ada, bob] = await Promise.all([house().person("ada"), house().person("bob")]);
  const chat = await groupOf(ada, bob);
  await using visit = await house().visit(ada, phone);
  const { page } = visit;
  await page.getByRole("button", { name: "Menu", exact: true }).tap();
  await page.getByRole("menuitem", { name: "Settings" }).tap();
  await page.getByRole("heading", { name: "Settings", level: 1 }).waitFor();
  await page.goBack();
  await page.getByRole("link", { name: bob.username }).waitFor();

  await page.getByRole("button", { name: "New conversation" }).tap();
  await page.getByRole("dialog").getByRole("button", { name: "Close" }).tap();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Search" }).tap();
  await page.getByRole("combobox").fill("New conv");
  await page.getByRole("option", { name: "New conversation" }).tap();
  await page.getByRole("dialog", { name: "New conversation" }).waitFor();
  await page.goBack();
  await page.getByRole("dialog").waitFor({ state: "detached" });

  await page.getByRole("button", { name: "Search" }).tap();
  await page.getByRole("option", { name: bob.username }).first().tap();
  await composer(page).waitFor();
  expect(new URL(page.url()).pathname).toBe(`/c/${chat.id}`);
  const details = page.getByRole("complementary", { name: "Details" });
  for (const close of [
    () => page.keyboard.press("Escape"),
    () => page.getByRole("button", { name: "Close details" }).tap(),
  ]) {
    await page.getByRole("button", { name: "Members and agents" }).tap();
    await details.waitFor();
    await close();
    await details.waitFor({ state: "detached" });
  }
  await page.reload();
  await composer(page).waitFor();
  await page.goBack();
  await page.getByRole("link", { name: bob.username }).waitFor();
  expect(new URL(page.url()).pathname).toBe("/");
  expect(visit.problems()).toEqual([]);
});

test("on a phone a menu is a sheet with rows for fingers", async () => {
  const ada = await house().person("ada");
  await using visit = await house().visit(ada, phone);
  const { page } = visit;
  await page.getByRole("button", { name: "Menu", exact: true }).tap();
  const rows = page.getByRole("menuitem");
  await rows.first().waitFor();
  for (const row of await rows.all()) {
    const box = await row.boundingBox();
    expect(box?.height).toBeGreaterThanOrEqual(44);
    expect(box?.width).toBeGreaterThan(300);
  }
  await page.keyboard.press("Escape");
  await rows.first().waitFor({ state: "detached" });
  expect(visit.problems()).toEqual([]);
});

test("agents go by their own name, with their owner beside it", async () => {
  const [ada, bob] = await Promise.all([house().person("ada"), house().person("bob")]);
  await giveSandboxKey(ada);
  const own = await ada.call("startChat", { usernames: [agentOf(ada)] });
  const group = await ada.call("startChat", {
    usernames: [bob.username, agentOf(ada)],
    title: "Together",
  });
  await bob.call("addGroupAgent", { chat_id: group.id, agent_username: agentOf(bob, "gpt") });
  await using visit = await house().visit(ada, { path: `/c/${own.id}` });
  const { page } = visit;
  await page.getByRole("link", { name: /^Claude yours/ }).waitFor();
  await page.getByRole("heading", { name: "Claude", level: 1 }).waitFor();

  await page.getByRole("link", { name: /^Together/ }).click();
  await ada.call("sendMessage", { chat_id: group.id, content: `@${agentOf(ada)} hello` });
  await message(page, "I am the built-in sandbox").waitFor();
  await page.getByRole("link", { name: /^Together.*Claude: Hello/ }).waitFor();
  await page.getByRole("button", { name: "Members and agents" }).click();
  const details = page.getByRole("complementary", { name: "Details" });
  await details.getByText("Claude", { exact: true }).waitFor();
  await details.getByText("GPT", { exact: true }).first().waitFor();
  await details.getByText(`@${bob.username}`, { exact: true }).first().waitFor();

  await page.getByRole("button", { name: "New conversation" }).click();
  await page.getByRole("combobox").fill(agentOf(ada));
  await page.getByRole("option", { name: /^Claude\s*yours/ }).waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox").fill("claude");
  await page
    .getByRole("option", { name: /^Claude\s*yours/ })
    .first()
    .waitFor();
  expect(visit.problems()).toEqual([]);
});

test("where a name alone could deceive, the username stands beside it", async () => {
  const [ada, bob, mallory] = await Promise.all(
    ["ada", "bob", "mallory"].map((name) => house().person(name)),
  );
  if (!ada || !bob || !mallory) throw new Error("somebody is missing");
  const carol = await house().person("carol");
  const unique = `Robert ${bob.username.replace(/\W|_|\d/g, "")}`;
  await bob.call("updateMe", { display_name: unique });
  await mallory.call("updateMe", { display_name: unique.replace("o", "о") });
  for (const other of [bob, mallory, carol]) {
    const { id: chat_id } = await other.call("startChat", { usernames: [ada.username] });
    await other.call("sendMessage", { chat_id, content: "Hi" });
  }
  await using visit = await house().visit(ada);
  const { page } = visit;
  const list = page.getByRole("navigation", { name: "Conversation list" });
  await list.getByText(`@${bob.username}`).waitFor();
  await list.getByText(`@${mallory.username}`).waitFor();
  expect(await list.getByText(`@${carol.username}`).count()).toBe(0);
  expect(visit.problems()).toEqual([]);
});

test("names that differ only at their end can be told apart in the list", async () => {
  const [ada, bob] = await Promise.all([house().person("ada"), house().person("bob")]);
  const region = "Quarterly planning for the whole of the northern region and its neighbours";
  for (const part of ["design", "engineering"]) {
    await ada.call("startChat", { usernames: [bob.username], title: `${region}: ${part}` });
  }
  await using visit = await house().visit(ada);
  const { page } = visit;
  const list = page.getByRole("navigation", { name: "Conversation list" });
  await list.getByRole("link", { name: `${region}: design` }).waitFor();
  for (const part of ["design", "engineering"]) {
    const row = list.getByRole("link", { name: `${region}: ${part}` });
    const end = row.getByText(new RegExp(`… .*${part}$`));
    const [outer, inner] = [await row.boundingBox(), await end.boundingBox()];
    if (!outer || !inner) throw new Error("the row is not in sight");
    expect(inner.x + inner.width).toBeLessThanOrEqual(outer.x + outer.width);
    expect(inner.height).toBeLessThanOrEqual(60);
  }
  expect(visit.problems()).toEqual([]);
});

test("in a short window a dialog scrolls, its button stays in sight, and rings are whole", async () => {
  const [ada, bob] = await Promise.all([house().person("ada"), house().person("bob")]);
  const chat = await groupOf(ada, bob);
  const short = { viewport: { width: 900, height: 320 } };
  await using visit = await house().visit(ada, { path: `/c/${chat.id}`, ...short });
  const { page } = visit;
  await page.getByRole("button", { name: "New conversation" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("option").first().waitFor();
  const button = await dialog.getByRole("button", { name: "Start conversation" }).boundingBox();
  expect((button?.y ?? 999) + (button?.height ?? 0)).toBeLessThanOrEqual(320);
  await dialog.getByLabel("Title").scrollIntoViewIfNeeded();
  await dialog.getByLabel("Title").fill("It can be reached");

  const clipped = await dialog.getByRole("combobox").evaluate((field) => {
    const ring = field.parentElement as HTMLElement;
    field.focus();
    let box = ring.parentElement;
    while (box && getComputedStyle(box).overflowY === "visible") box = box.parentElement;
    const { outlineWidth, outlineOffset } = getComputedStyle(ring);
    const reach = Number.parseFloat(outlineWidth) + Number.parseFloat(outlineOffset);
    box?.scrollTo(0, 0);
    return ring.getBoundingClientRect().top - reach < (box?.getBoundingClientRect().top ?? 0);
  });
  expect(clipped).toBe(false);
  await page.keyboard.press("Escape");

  await page.getByRole("button", { name: "Members and agents" }).click();
  await page.getByRole("button", { name: "Leave group" }).click();
  const stay = await page.getByRole("button", { name: "Stay" }).boundingBox();
  expect((stay?.y ?? 999) + (stay?.height ?? 0)).toBeLessThanOrEqual(320);
  await page.keyboard.press("Escape");
  await page.setViewportSize({ width: 900, height: 200 });
  await page.getByRole("button", { name: "Menu", exact: true }).click();
  const last = page.getByRole("menuitem", { name: "Sign out" });
  await last.scrollIntoViewIfNeeded();
  const box = await last.boundingBox();
  expect((box?.y ?? 999) + (box?.height ?? 0)).toBeLessThanOrEqual(200);
  expect(visit.problems()).toEqual([]);
});
