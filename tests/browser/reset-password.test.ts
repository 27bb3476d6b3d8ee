/// <reference lib="dom" />
import { describe, expect } from "bun:test";
import { addSecondFactor } from "@parley/testkit/authenticator.ts";
import type { Person } from "@parley/testkit/client.ts";
import { runMain } from "@parley/testkit/server.ts";
import { expectNoViolations } from "./axe.ts";
import { sharedHarness, test } from "./support.ts";

const harness = sharedHarness(async (started) => {
  olga = await started.person("olga");
  const { dataDir } = started.server;
  const { code, stderr } = await runMain(["operators", "add", olga.username], {
    PARLEY_DATA: dataDir,
  });
  if (code !== 0) throw new Error(stderr);
});
let olga: Person;

const NEW = "battery horse staple";

/** The path of a reset link for somebody. */
async function linkFor({ username }: Person): Promise<string> {
  const { url } = await olga.call("createPasswordReset", { username });
  return url.slice(harness().url.length);
}

describe("a reset link", () => {
  test("is made by an operator, and lets its person in with a new password", async () => {
    const ada = await harness().person("ada");
    await using operating = await harness().visit(olga, {
      path: `/operate/accounts#query=${ada.username}`,
    });
    const operator = operating.page;
    await operator.getByRole("button", { name: `More for @${ada.username}` }).click();
    await operator.getByRole("menuitem", { name: "Make a reset link" }).click();
    await operator.getByRole("button", { name: "Make the link" }).click();
    const shown = operator.getByRole("dialog", { name: "Reset link for" });
    const link = (await shown.locator("pre").innerText()).trim();
    await expectNoViolations(operator);
    await operator.keyboard.press("Escape");
    await operator.getByRole("button", { name: "Show the link" }).click();
    await shown.getByRole("button", { name: "Copy" }).click();
    expect(await operator.evaluate(() => navigator.clipboard.readText())).toBe(link);
    await operator.keyboard.press("Escape");
    await shown.waitFor({ state: "detached" });
    expect(operating.problems()).toEqual([]);

    await using visit = await harness().visit(null, { path: link.slice(harness().url.length) });
    const { page } = visit;
    await page.getByText(`@${ada.username}`).waitFor();
    await expectNoViolations(page);
    await page.getByLabel("New password").fill(NEW);
    await page.getByRole("button", { name: "Set the password" }).click();
    await page.getByRole("button", { name: "Menu", exact: true }).waitFor();
    expect(new URL(page.url()).pathname + new URL(page.url()).hash).toBe("/");
    expect(visit.problems()).toEqual([]);
  });

  test("that does not work says so", async () => {
    await using visit = await harness().visit(null, { path: "/reset-password#plr_unknown" });
    const { page } = visit;
    await page.getByRole("heading", { name: "This link does not work" }).waitFor();
    await page.getByRole("button", { name: "Go to Parley" }).click();
    await page.getByRole("heading", { name: "Create your account" }).waitFor();
  });

  test("leads to the sign-in page where a second factor is needed", async () => {
    const ada = await harness().person("ada");
    await addSecondFactor(ada, "correct horse battery");
    await using visit = await harness().visit(null, { path: await linkFor(ada) });
    const { page } = visit;
    await page.getByLabel("New password").fill(NEW);
    await page.getByRole("button", { name: "Set the password" }).click();
    await page.getByText("Your new password is set. Please sign in with it.").waitFor();
  });

  test("of somebody else leaves the session of this browser alone", async () => {
    const [ada, bob] = [await harness().person("ada"), await harness().person("bob")];
    await using visit = await harness().visit(bob, { path: await linkFor(ada) });
    const { page } = visit;
    await page.getByLabel("New password").fill(NEW);
    await page.getByRole("button", { name: "Set the password" }).click();
    await page.getByText(`The password of @${ada.username} is set.`).waitFor();
    await page.getByRole("link", { name: `@${bob.username}` }).waitFor();
    expect(visit.problems()).toEqual([]);
  });

  test("of the person who is signed in signs them in again", async () => {
    const ada = await harness().person("ada");
    await using visit = await harness().visit(ada, { path: await linkFor(ada) });
    const { page } = visit;
    await page.getByLabel("New password").fill(NEW);
    await page.getByRole("button", { name: "Set the password" }).click();
    await page.getByRole("button", { name: "Menu", exact: true }).waitFor();
    const token = await page.evaluate(() => localStorage.getItem("parley.token"));
    expect(token).not.toBe(ada.token);
  });
});

test("the sign-in page explains what to do about a forgotten password", async () => {
  await using visit = await harness().visit(null);
  const { page } = visit;
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("button", { name: "Forgot your password?" }).click();
  await page.getByText("Ask the people who run this service for a link").waitFor();
  await expectNoViolations(page);
  await page.getByRole("button", { name: "OK" }).click();
  expect(visit.problems()).toEqual([]);
});
