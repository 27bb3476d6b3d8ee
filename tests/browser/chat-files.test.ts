/// <reference lib="dom" />
import { expect } from "bun:test";
import type { Page } from "playwright-core";
import { expectNoViolations } from "./axe.ts";
import { lightbox, loaded, sendFiles } from "./files.ts";
import { png } from "./pictures.ts";
import { goBack, groupChat, message, PHONE, say, sharedHarness, test } from "./support.ts";

const harness = sharedHarness();

const section = (page: Page) => page.getByRole("region", { name: "Files" });
const names = (page: Page) => section(page).getByRole("listitem");
const openDetails = (page: Page) =>
  page.getByRole("button", { name: "Members and agents" }).click();

test("the details list the files of a conversation, newest first", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  await openDetails(page);
  await section(page).getByText("No files yet.").waitFor();
  await sendFiles(bob, chat, { "old.png": png(50, 40) });
  for (let n = 1; n <= 60; n++) await say(bob, chat, `Message ${n}`);
  for (const name of ["1.txt", "2.txt", "3.txt", "4.txt", "5.txt"]) {
    await sendFiles(bob, chat, { [name]: "hello" });
  }
  const { id } = await sendFiles(bob, chat, { "plan.txt": "hello" });
  await names(page).filter({ hasText: "plan.txt" }).waitFor();
  await page.reload();
  await message(page, "Message 60").waitFor();
  await openDetails(page);
  await names(page).first().getByText("plan.txt").waitFor();
  await names(page).first().getByText(`5 bytes · ${bob.username}`).waitFor();
  expect(await names(page).count()).toBe(6);
  await section(page).getByRole("button", { name: "More files" }).click();
  await names(page).filter({ hasText: "old.png" }).waitFor();
  expect(await names(page).count()).toBe(7);
  expect(await section(page).getByRole("button", { name: "More files" }).count()).toBe(0);
  await expectNoViolations(section(page));

  // The message of this picture is not loaded.
  await section(page).getByRole("button", { name: "old.png", exact: false }).first().click();
  await loaded(page, "old.png");
  await lightbox(page).getByRole("button", { name: "Close" }).click();
  await lightbox(page).waitFor({ state: "detached" });
  const downloading = page.waitForEvent("download");
  await section(page)
    .getByRole("link", { name: /^Download plan.txt/ })
    .click();
  expect((await downloading).suggestedFilename()).toBe("plan.txt");
  await bob.call("deleteMessages", { chat_id: chat.id, message_ids: [id] });
  await names(page).filter({ hasText: "plan.txt" }).waitFor({ state: "detached" });
  await section(page).getByRole("button", { name: "Show old.png in conversation" }).click();
  await page.getByRole("article").getByRole("button", { name: "old.png" }).waitFor();
  expect(visit.problems()).toEqual([]);
});

test("on a phone, a file of the details leads to its message", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  await sendFiles(bob, chat, { "photo.png": png(50, 40) }, "Look at this");
  await using visit = await harness().visit(ada, { path, ...PHONE });
  const { page } = visit;
  await message(page, "Look at this").waitFor();
  await openDetails(page);
  const photo = section(page).getByRole("button", { name: "photo.png", exact: false }).first();
  await photo.tap();
  await lightbox(page).waitFor();
  await goBack(page);
  await lightbox(page).waitFor({ state: "detached" });
  await photo.waitFor();
  await expectNoViolations(page);
  await section(page).getByRole("button", { name: "Show photo.png in conversation" }).tap();
  await section(page).waitFor({ state: "detached" });
  await message(page, "Look at this").waitFor();
  expect(visit.problems()).toEqual([]);
});
