import { expect } from "bun:test";
import { failure } from "@parley/testkit/client.ts";
import { expectNoViolations } from "./axe.ts";
import {
  composer,
  groupChat,
  hasFocus,
  message,
  PHONE,
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

const FOLDED = "Message of somebody you blocked";

test("messages of a blocked person are folded away in groups, on every device", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  await say(bob, chat, "Something rude");
  await using visit = await harness().visit(ada, { path });
  await using phone = await harness().visit(ada, { path, ...PHONE });
  const { page } = visit;
  await message(phone.page, "Something rude").waitFor();
  await page.getByRole("button", { name: "Members and agents" }).click();
  await page.getByRole("button", { name: `Options for ${bob.username}` }).click();
  await page.getByRole("menuitem", { name: "Block" }).click();
  const dialog = page.getByRole("dialog", { name: `Block ${bob.username}?` });
  expect(await hasFocus(dialog.getByRole("button", { name: "Cancel" }))).toBe(true);
  await dialog.getByRole("button", { name: "Block" }).click();
  await page.getByText("· blocked").waitFor();

  for (const each of [page, phone.page]) {
    const folded = each.getByRole("article", { name: FOLDED });
    await folded.waitFor();
    expect(await each.getByText("Something rude").count()).toBe(0);
  }
  await page.getByRole("link", { name: new RegExp(FOLDED) }).waitFor();
  await expectNoViolations(page);
  await page.getByRole("button", { name: "Show", exact: true }).press("Enter");
  await message(page, "Something rude").waitFor();
  await untilFocused(page.getByRole("button", { name: "Hide", exact: true }));
  await say(bob, chat, "More of it");
  await phone.page.getByRole("button", { name: "Show", exact: true }).nth(1).tap();
  await message(phone.page, "More of it").waitFor();

  await page.getByRole("button", { name: `Options for ${bob.username}` }).click();
  await page.getByRole("menuitem", { name: "Unblock" }).click();
  await message(page, "More of it").waitFor();
  expect([...visit.problems(), ...phone.problems()]).toEqual([]);
});

test("who blocks a stranger can leave the groups that the stranger has started, all at once", async () => {
  const { ada, bob } = await twoPeople(harness());
  const title = (number: number) => `Lucky draw ${number}`;
  const usernames = [ada.username];
  const groups = await Promise.all(
    [1, 2, 3].map((number) => bob.call("startChat", { usernames, title: title(number) })),
  );
  const [, answered, open] = groups;
  if (!answered || !open) throw new Error("the groups are missing");
  await say(ada, answered, "Who are you?");
  await using visit = await harness().visit(ada, { path: `/c/${open.id}` });
  const { page } = visit;
  await page.getByRole("link", { name: title(1) }).waitFor();
  await page.getByRole("button", { name: "Members and agents" }).click();
  await page.getByRole("button", { name: `Options for ${bob.username}` }).click();
  await page.getByRole("menuitem", { name: "Block" }).click();
  const dialog = page.getByRole("dialog", { name: `Block ${bob.username}?` });
  await dialog.getByRole("checkbox", { name: "Leave their groups" }).check();
  await expectNoViolations(page);
  await dialog.getByRole("button", { name: "Block" }).click();
  await page.getByText(`${bob.username} is blocked. You left 2 groups.`).waitFor();
  await page.getByRole("link", { name: title(1) }).waitFor({ state: "detached" });
  await page.getByRole("link", { name: title(3) }).waitFor({ state: "detached" });
  await page.getByRole("link", { name: title(2) }).waitFor();
  await page.getByRole("heading", { name: "Choose a conversation" }).waitFor();
  expect((await ada.call("getChats")).items.map(({ id }) => id)).toEqual([answered.id]);
  expect(visit.problems()).toEqual([]);
});

test("who blocks somebody who has started no groups is not asked about them", async () => {
  const { ada, bob } = await twoPeople(harness());
  const chat = await ada.call("startChat", { usernames: [bob.username] });
  await using visit = await harness().visit(ada, { path: `/c/${chat.id}#details` });
  const { page } = visit;
  await page.getByRole("button", { name: `Options for ${bob.username}` }).click();
  await page.getByRole("menuitem", { name: "Block" }).click();
  const dialog = page.getByRole("dialog", { name: `Block ${bob.username}?` });
  expect(await dialog.getByRole("checkbox").count()).toBe(0);
  await showsBriefly(page.getByText(`${bob.username} is blocked.`, { exact: true }), () =>
    dialog.getByRole("button", { name: "Block" }).click(),
  );
  expect(visit.problems()).toEqual([]);
});

test("a direct conversation with a blocked person has no composer until they are unblocked", async () => {
  const { ada, bob } = await twoPeople(harness());
  const chat = await ada.call("startChat", { usernames: [bob.username] });
  const path = `/c/${chat.id}`;
  await using visit = await harness().visit(ada, { path });
  await using other = await harness().visit(bob, { path });
  const { page } = visit;
  await composer(page).waitFor();
  await composer(other.page).waitFor();
  await ada.call("blockUser", { username: bob.username });
  await page.getByText(`You blocked ${bob.username}.`).waitFor();
  expect(await composer(page).count()).toBe(0);
  await expectNoViolations(page);
  await write(other.page, "Are you there?");
  await message(other.page, "Are you there?")
    .getByText("you cannot write to this person")
    .waitFor();
  await page.getByRole("button", { name: "Unblock" }).click();
  await composer(page).waitFor();
  await message(other.page, "Are you there?").getByRole("button", { name: "Try again" }).click();
  await message(page, "Are you there?").waitFor();
  expect([...visit.problems(), ...other.problems()]).toEqual([]);
});

test("a message is reported with a reason, by mouse and on a phone", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  await say(ada, chat, "My own");
  await say(bob, chat, "Something rude");
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  await pressOn(message(page, "My own"), "More");
  await page.getByRole("menuitem", { name: "Copy text" }).waitFor();
  expect(await page.getByRole("menuitem", { name: "Report" }).count()).toBe(0);
  await page.keyboard.press("Escape");
  await pressOn(message(page, "Something rude"), "More");
  await page.getByRole("menuitem", { name: "Report" }).click();
  const dialog = page.getByRole("dialog", { name: "Report this message?" });
  const reason = dialog.getByLabel("What is wrong with it?");
  expect(await hasFocus(reason)).toBe(true);
  await dialog.getByRole("button", { name: "Report" }).click();
  await dialog.getByRole("alert").waitFor();
  await expectNoViolations(page);
  await reason.fill("It is rude.");
  await dialog.getByRole("button", { name: "Report" }).click();
  await page.getByText("Reported to those who run this service.").waitFor();
  await dialog.waitFor({ state: "detached" });

  await using phone = await harness().visit(ada, { path, ...PHONE });
  const last = message(phone.page, "Something rude");
  await last.getByRole("button", { name: "Message actions" }).dispatchEvent("click");
  await phone.page.getByRole("button", { name: "Report" }).tap();
  await phone.page.getByLabel("What is wrong with it?").fill("Still rude.");
  await phone.page.getByRole("button", { name: "Report" }).tap();
  await phone.page.getByText("Reported to those who run this service.").waitFor();
  expect([...visit.problems(), ...phone.problems()]).toEqual([]);
});

test("whoever leaves a group for good cannot be added again", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  await using visit = await harness().visit(bob, { path });
  const { page } = visit;
  await page.getByRole("button", { name: "Members and agents" }).click();
  await page.getByRole("button", { name: "Leave group" }).click();
  expect(await hasFocus(page.getByRole("button", { name: "Stay" }))).toBe(true);
  await page.getByRole("checkbox", { name: /For good/ }).check();
  await expectNoViolations(page);
  await page.getByRole("button", { name: "Leave", exact: true }).click();
  await page.waitForURL((url) => url.pathname === "/");
  const add = ada.call("addChatMembers", { chat_id: chat.id, usernames: [bob.username] });
  expect((await failure(add)).message).toContain("left this group for good");
  expect(visit.problems()).toEqual([]);
});

test("the settings list blocked people and say who may add the person", async () => {
  const { ada, bob } = await twoPeople(harness());
  await ada.call("blockUser", { username: bob.username });
  await using visit = await harness().visit(ada, { path: "/settings" });
  const { page } = visit;
  const list = page.getByRole("list", { name: "Blocked people" });
  await list.getByText(`@${bob.username}`).waitFor();
  await page.getByRole("radio", { name: "People I know" }).check({ force: true });
  await page.getByText("Only people with whom you have a conversation").waitFor();
  await expectNoViolations(page);
  await list.getByRole("button", { name: `Unblock ${bob.username}` }).click();
  await page.getByText("You blocked nobody.").waitFor();
  await page.reload();
  await page.getByText("Only people with whom you have a conversation").waitFor();
  const start = bob.call("startChat", { usernames: [ada.username] });
  expect((await failure(start)).message).toContain(`you cannot add ${ada.username}`);
  expect(visit.problems()).toEqual([]);
});
