import { expect } from "bun:test";
import { Person, post } from "@parley/testkit/client.ts";
import { refuseCalls, sharedHarness, test } from "./support.ts";

const harness = sharedHarness();

test("changing the password signs out other devices", async () => {
  const elsewhere = await harness().person("ada");
  const { username } = elsewhere;
  const signIn = (password: string) => post(harness().url, "signIn", { username, password });
  const { body } = await signIn("correct horse battery");
  if (!body.ok) throw new Error(body.description);
  const { access_token } = body.result as { access_token: string };
  const ada = new Person(harness().url, access_token, elsewhere.account);
  await using visit = await harness().visit(ada, { path: "/settings/security" });
  const { page } = visit;
  const change = async (current: string) => {
    await page.getByLabel("Current password").fill(current);
    await page.getByLabel("New password").fill("battery staple");
    const form = page.locator("form").filter({ has: page.getByLabel("New password") });
    await form.getByRole("button", { name: "Save" }).click();
  };

  await change("not this one");
  await page.getByRole("alert").getByText("not your current password").waitFor();
  expect(await page.getByLabel("Current password").getAttribute("aria-invalid")).toBe("true");
  await change("correct horse battery");
  await page.getByText("Saved").waitFor();
  expect((await post(harness().url, "getMe", {}, elsewhere.token)).status).toBe(401);
  expect((await signIn("battery staple")).status).toBe(200);
});

test("a session that was ended elsewhere says so on the sign-in page", async () => {
  const ada = await harness().person("ada");
  await using visit = await harness().visit(ada);
  const { page } = visit;
  await page.getByRole("heading", { name: /^Hello/ }).waitFor();
  await ada.call("signOut", {});
  await page.getByRole("alert").getByText("Your session was ended").waitFor();
});

test("a tab whose session has ended keeps the session that another tab has stored since", async () => {
  const ada = await harness().person("ada");
  const { username } = ada;
  const { body } = await post(harness().url, "signIn", {
    username,
    password: "correct horse battery",
  });
  if (!body.ok) throw new Error(body.description);
  const { access_token } = body.result as { access_token: string };
  await using visit = await harness().visit(ada);
  const { page } = visit;
  await page.getByRole("heading", { name: /^Hello/ }).waitFor();
  // As the other tab does after a sign-in.
  await page.evaluate((token) => localStorage.setItem("parley.token", token), access_token);
  await ada.call("signOut", {});
  await page.getByRole("heading", { name: "Create your account" }).waitFor();
  await page.reload();
  await page.getByRole("heading", { name: /^Hello/ }).waitFor();
});

test("settings that could not be loaded say so, and are loaded by «Try again» and after a reconnect", async () => {
  const ada = await harness().person("ada");
  await using visit = await harness().visit(ada, { networkFails: true });
  const { page } = visit;
  const refused = await refuseCalls(page);
  await page.reload();
  await page.getByRole("heading", { name: /^Hello/ }).waitFor();
  const calls = ["getSessions", "getSecondFactor", "getMe", "getBlocked", "getToolServers"];
  for (const call of calls) refused.add(call);
  await page.getByRole("button", { name: "Menu", exact: true }).click();
  await page.getByRole("menuitem", { name: "Settings" }).click();
  const retries = page.getByRole("button", { name: "Try again" });
  await retries.nth(1).waitFor();
  const tab = (name: string) =>
    page.getByRole("navigation", { name: "Settings" }).getByRole("link", { name });
  await tab("Tool servers").click();
  await page.getByRole("heading", { name: "Tool servers" }).waitFor();
  await retries.waitFor();
  expect(await retries.count()).toBe(1);
  await tab("Security").click();
  await retries.nth(1).waitFor();
  refused.clear();
  await retries.first().click();
  await retries.nth(1).waitFor({ state: "detached" });
  expect(await retries.count()).toBe(1);

  await page.context().setOffline(true);
  await page.getByText("You are offline").waitFor();
  await page.context().setOffline(false);
  await page.getByText("This device").waitFor();
  await page.getByRole("button", { name: "Set up" }).waitFor();
  expect(await page.getByRole("button", { name: "Try again" }).count()).toBe(0);
  expect(visit.problems()).toEqual([]);
});

test("each page of the settings has an address of its own, and the browser goes back to the last one", async () => {
  await using visit = await harness().visit(await harness().person("ada"), { path: "/settings" });
  const { page } = visit;
  await page.getByRole("heading", { name: "Blocked people" }).waitFor();
  await page.getByLabel("Your name").fill("Ada, Countess");
  const tabs = page.getByRole("navigation", { name: "Settings" });
  await tabs.getByRole("link", { name: "Security" }).click();
  await page.getByRole("heading", { name: "Sessions" }).waitFor();
  expect(new URL(page.url()).pathname).toBe("/settings/security");
  expect(await page.title()).toBe("Security · Settings · Parley");
  expect(await page.getByRole("heading", { name: "Blocked people" }).count()).toBe(0);
  await page.goBack();
  await page.getByRole("heading", { name: "Blocked people" }).waitFor();
  expect(await page.getByLabel("Your name").inputValue()).toBe("Ada, Countess");
  await page.goForward();
  await page.reload();
  await page.getByRole("heading", { name: "Sessions" }).waitFor();
  expect(visit.problems()).toEqual([]);
});
