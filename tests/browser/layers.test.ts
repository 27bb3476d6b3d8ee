import { expect } from "bun:test";
import type { Page } from "playwright-core";
import {
  composer,
  goBack,
  groupChat,
  hasFocus,
  message,
  PHONE,
  pressOn,
  say,
  sharedHarness,
  test,
  untilFocused,
} from "./support.ts";

const harness = sharedHarness();

const focusedLabel = (page: Page) =>
  page.evaluate(() => {
    const element = document.activeElement as HTMLInputElement | null;
    return element?.ariaLabel ?? element?.labels?.[0]?.textContent ?? element?.textContent ?? "";
  });

test("a dialog focuses its first field, or its safe answer", async () => {
  const { ada, path } = await groupChat(harness());
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  await page.getByRole("button", { name: "New conversation" }).click();
  await page.getByRole("dialog").waitFor();
  expect(await focusedLabel(page)).toBe("Find people and agents");
  await page.getByLabel("Title").fill("A trip");
  await page.keyboard.press("Escape");
  await page.getByRole("dialog", { name: "Discard your changes?" }).waitFor();
  expect(await focusedLabel(page)).toBe("Keep editing");
  await page.keyboard.press("Enter");
  expect(await page.getByLabel("Title").inputValue()).toBe("A trip");
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Discard", exact: true }).click();
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

test("«Delete for me» needs confirmation", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  await say(bob, chat, "Keep me");
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  const confirmation = page.getByRole("dialog", { name: "Delete for me?" });
  const choose = async () => {
    await pressOn(message(page, "Keep me"), "More");
    await page.getByRole("menuitem", { name: "Delete for me" }).click();
    await confirmation.waitFor();
  };
  await choose();
  expect(await focusedLabel(page)).toBe("Keep");
  await page.keyboard.press("Enter");
  await confirmation.waitFor({ state: "detached" });
  await choose();
  await confirmation.getByRole("button", { name: "Delete" }).click();
  await message(page, "Keep me").waitFor({ state: "detached" });
  expect(visit.problems()).toEqual([]);
});

test("after a message was deleted, the focus is on its neighbour, or on the composer", async () => {
  const { ada, chat, path } = await groupChat(harness());
  for (const text of ["First", "Second", "Third"]) await say(ada, chat, text);
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  const remove = async (text: string) => {
    await pressOn(message(page, text), "More");
    await page.getByRole("menuitem", { name: "Delete for everyone" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).press("Enter");
    await message(page, text).waitFor({ state: "detached" });
  };
  await remove("Second");
  await untilFocused(message(page, "Third"));
  await remove("Third");
  await untilFocused(message(page, "First"));
  await remove("First");
  await untilFocused(composer(page));
  expect(visit.problems()).toEqual([]);
});

test("«back» on a phone closes one layer at a time and then leaves the page", async () => {
  const { ada, bob, chat } = await groupChat(harness());
  await using visit = await harness().visit(ada, PHONE);
  const { page } = visit;
  await page.getByRole("link", { name: bob.username }).tap();
  await composer(page).waitFor();
  await page.getByRole("button", { name: "Members and agents" }).tap();
  await page.getByRole("button", { name: `Options for ${bob.username}` }).tap();
  const sheet = page.getByRole("menuitem", { name: "Remove from group" });
  await sheet.waitFor();

  await goBack(page);
  await sheet.waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Leave group" }).tap();
  await page.getByRole("dialog", { name: /^Leave/ }).waitFor();

  await goBack(page);
  await page.getByRole("dialog").waitFor({ state: "detached" });
  expect(await page.getByRole("complementary", { name: "Details" }).isVisible()).toBe(true);

  await goBack(page);
  await page.getByRole("complementary", { name: "Details" }).waitFor({ state: "detached" });
  expect(new URL(page.url()).pathname).toBe(`/c/${chat.id}`);

  await goBack(page);
  await page.getByRole("link", { name: bob.username }).waitFor();
  expect(new URL(page.url()).pathname).toBe("/");
  expect(visit.problems()).toEqual([]);
});

test("a layer that was closed without «back» leaves no history entry behind", async () => {
  const { ada, bob, chat } = await groupChat(harness());
  await using visit = await harness().visit(ada, PHONE);
  const { page } = visit;
  await page.getByRole("button", { name: "Menu", exact: true }).tap();
  await page.getByRole("menuitem", { name: "Settings" }).tap();
  await page.getByRole("heading", { name: "Settings", level: 1 }).waitFor();
  await goBack(page);
  await page.getByRole("link", { name: bob.username }).waitFor();

  await page.getByRole("button", { name: "New conversation" }).tap();
  await page.getByRole("dialog").getByRole("button", { name: "Close" }).tap();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Search" }).tap();
  await page.getByRole("combobox").fill("New conv");
  await page.getByRole("option", { name: "New conversation" }).tap();
  await page.getByRole("dialog", { name: "New conversation" }).waitFor();
  await goBack(page);
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
  await goBack(page);
  await page.getByRole("link", { name: bob.username }).waitFor();
  expect(new URL(page.url()).pathname).toBe("/");
  expect(visit.problems()).toEqual([]);
});

test("Escape closes the topmost layer first, then the details", async () => {
  const { ada, path } = await groupChat(harness());
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  const details = page.getByRole("complementary", { name: "Details" });
  const opener = page.getByRole("button", { name: "Members and agents" });
  await composer(page).waitFor();

  await opener.click();
  await details.waitFor();
  await page.keyboard.press("Escape");
  await details.waitFor({ state: "detached" });

  await opener.click();
  await details.getByRole("button", { name: "Add" }).first().focus();
  await page.keyboard.press("Escape");
  await details.waitFor({ state: "detached" });
  expect(await hasFocus(opener)).toBe(true);

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

test("a menu on a phone is a sheet with rows large enough for fingers", async () => {
  const ada = await harness().person("ada");
  await using visit = await harness().visit(ada, PHONE);
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

test("a dialog in a low window scrolls, keeps its button visible and does not clip focus rings", async () => {
  const { ada, path } = await groupChat(harness());
  const short = { viewport: { width: 900, height: 320 } };
  await using visit = await harness().visit(ada, { path, ...short });
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
  await page.getByRole("button", { name: "Discard", exact: true }).click();

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
