import { expect } from "bun:test";
import { readFileSync } from "node:fs";
import { type Person, post, say, signUp } from "@parley/testkit/client.ts";
import { noRates, startServer } from "@parley/testkit/server.ts";
import { linesOf, unzip } from "@parley/testkit/zip.ts";
import { expectNoViolations } from "./axe.ts";
import { pressOn, sharedHarness, test } from "./support.ts";

const harness = sharedHarness();
const PASSWORD = "correct horse battery";
const direct = (one: Person, other: Person) =>
  one.call("startChat", { usernames: [other.username] });

test("people download their data", async () => {
  const [ada, bob] = [await harness().person("ada"), await harness().person("bob")];
  const message = await say(ada, await direct(ada, bob), "for the archive");
  await using visit = await harness().visit(ada, { path: "/settings/data" });
  const { page } = visit;
  const downloading = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download my data" }).click();
  const download = await downloading;
  expect(download.suggestedFilename()).toMatch(/^parley-ada.*\.zip$/);
  const files = unzip(readFileSync(await download.path()));
  expect(linesOf(files, "messages.jsonl")).toEqual([message]);
  await page.getByRole("heading", { name: "Settings" }).waitFor();
  expect(visit.problems()).toEqual([]);
});

test("people confirm their password before a sensitive change, some time after the sign-in", async () => {
  // Moving the clock would end what the other tests do.
  await using server = await startServer(noRates);
  const { url } = server;
  await using visit = await harness().visit(await signUp(url), { url, path: "/settings/data" });
  const { page } = visit;
  await server.moveClock(15 * 60_000);
  const button = page.getByRole("button", { name: "Download my data" });
  await button.click();
  const dialog = page.getByRole("dialog", { name: "Is it you?" });
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await page.getByText("confirm your password first").waitFor();
  await button.click();
  await dialog.getByLabel("Your password").fill("not this one");
  await dialog.getByRole("button", { name: "Confirm" }).click();
  await dialog.getByText("This is not your password.").waitFor();
  await expectNoViolations(page);
  await dialog.getByLabel("Your password").fill(PASSWORD);
  const downloading = page.waitForEvent("download");
  await dialog.getByRole("button", { name: "Confirm" }).click();
  await downloading;
  await dialog.waitFor({ state: "detached" });
  // The browser reports every answer with an error status.
  expect(visit.problems().filter((problem) => !/40[13]/.test(problem))).toEqual([]);
});

test("people delete their account, and others see it at once", async () => {
  const [ada, bob] = [await harness().person("ada"), await harness().person("bob")];
  const chat = await direct(ada, bob);
  await say(ada, chat, "my last words");
  await using other = await harness().visit(bob, { path: `/c/${chat.id}` });
  await other.page.getByRole("main").getByText("my last words").waitFor();
  await using visit = await harness().visit(ada, { path: "/settings/data" });
  const { page } = visit;
  await page.getByRole("button", { name: "Delete my account" }).click();
  const dialog = page.getByRole("dialog");
  const confirm = async (password: string) => {
    await dialog.getByLabel("Your password").fill(password);
    await dialog.getByRole("button", { name: "Delete my account" }).click();
  };
  await confirm("not this one");
  await dialog.getByText("This is not your password.").waitFor();
  await confirm(PASSWORD);
  await page.getByText("Your account is deleted.").waitFor();
  const { username } = ada;
  const signIn = await post(harness().url, "signIn", { username, password: PASSWORD });
  expect(signIn.status).toBe(401);
  expect(await page.evaluate(() => Object.values(localStorage).join())).not.toContain("last words");

  await other.page.getByText("This account is deleted.").waitFor();
  await other.page.getByRole("heading", { name: "Deleted account" }).first().waitFor();
  expect(await other.page.getByRole("textbox", { name: "Message" }).count()).toBe(0);
  await other.page.getByRole("main").getByText("my last words").waitFor();
});

test("a conversation with a deleted account offers nothing that the server refuses", async () => {
  const [ada, bob] = [await harness().person("ada"), await harness().person("bob")];
  const chat = await direct(ada, bob);
  const { id: message_id } = await say(ada, chat, "a question");
  await bob.call("addReaction", { message_id, emoji: "👍" });
  await ada.call("addReaction", { message_id, emoji: "🎉" });
  await say(bob, chat, "an answer");
  await using visit = await harness().visit(bob, { path: `/c/${chat.id}` });
  const { page } = visit;
  const own = page.getByRole("article").filter({ hasText: "an answer" });
  const menuOf = async () => {
    await pressOn(own, "More");
    const items = await page.getByRole("menuitem").allTextContents();
    await page.keyboard.press("Escape");
    return items;
  };
  expect(await menuOf()).toContain("Edit");
  await ada.call("deleteMe", { password: PASSWORD });
  await page.getByText("This account is deleted.").waitFor();
  expect(await menuOf()).toEqual(["Copy text", "Delete for me", "Delete for everyone"]);
  for (const name of ["React", "Reply"]) {
    expect(await page.getByRole("button", { name, exact: true }).count()).toBe(0);
  }
  const reaction = (emoji: string) => page.getByRole("button", { name: `${emoji}, 1` });
  expect(await reaction("🎉").getAttribute("aria-disabled")).toBe("true");
  // One's own reaction can still be taken back.
  await reaction("👍").click();
  await reaction("👍").waitFor({ state: "detached" });
  expect(visit.problems()).toEqual([]);
});

test("people choose that their messages disappear", async () => {
  const [ada, bob] = [await harness().person("ada"), await harness().person("bob")];
  const chat = await direct(ada, bob);
  await say(bob, chat, "this stays");
  await say(ada, chat, "this goes");
  await using other = await harness().visit(bob, { path: `/c/${chat.id}` });
  await other.page.getByRole("main").getByText("this goes").waitFor();
  await using visit = await harness().visit(ada, { path: "/settings/data" });
  const { page } = visit;
  await page.getByRole("button", { name: "Delete my account" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("Delete my messages").click();
  await dialog.getByText("goes away for everybody").waitFor();
  await dialog.getByLabel("Your password").fill(PASSWORD);
  await dialog.getByRole("button", { name: "Delete my account" }).click();
  await page.getByText("Your account is deleted.").waitFor();
  const gone = other.page.getByRole("main").getByText("this goes");
  await gone.waitFor({ state: "detached" });
  await other.page.getByRole("main").getByText("this stays").waitFor();
});
