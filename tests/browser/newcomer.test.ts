import { describe, expect } from "bun:test";
import { post } from "@parley/testkit/client.ts";
import { limits, startServer } from "@parley/testkit/server.ts";
import { buildWeb, firstLoad } from "../../packages/web/build.ts";
import { message, sharedHouse, test } from "./support.ts";

const house = sharedHouse();

test("a newcomer has an agent answering without reading anything", async () => {
  await using visit = await house().visit();
  const { page } = visit;
  await page.getByLabel("Your name").fill("Nora Newcomer");
  await page.getByLabel("Username").fill("nora");
  await page.getByLabel("Password").fill("correct horse");
  await page.getByRole("button", { name: "Create account" }).click();
  await page.getByRole("button", { name: "Try your agent now" }).click();
  await page.getByRole("button", { name: "Say hello" }).click();
  await message(page, "I am the built-in sandbox").waitFor();

  await page.getByRole("button", { name: "Menu" }).click();
  await page.getByRole("menuitem", { name: "Sign out" }).click();
  await page.getByRole("heading", { name: "Welcome back" }).waitFor();
  await page.getByLabel("Username").fill("nora");
  await page.getByLabel("Password").fill("wrong horse");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("alert").getByText("do not fit together").waitFor();
  await page.getByLabel("Password").fill("correct horse");
  await page.getByRole("button", { name: "Sign in" }).click();
  await message(page, "Hello! Who are you?").first().waitFor();
  // The browser itself tells of the refused sign-in.
  expect(visit.problems().filter((problem) => !problem.includes("401"))).toEqual([]);
});

test("somebody who guesses at a password does not lock out the browser that knows it", async () => {
  await using visit = await house().visit();
  const { page } = visit;
  await page.getByLabel("Your name").fill("Gina");
  await page.getByLabel("Username").fill("gina");
  await page.getByLabel("Password").fill("correct horse");
  await page.getByRole("button", { name: "Create account" }).click();
  await page.getByRole("button", { name: "Menu" }).click();
  await page.getByRole("menuitem", { name: "Sign out" }).click();
  await page.getByRole("heading", { name: "Welcome back" }).waitFor();
  const guess = () =>
    post(house().url, "signIn", { username: "gina", password: "wrong horse battery" });
  while ((await guess()).status !== 429);
  await page.getByLabel("Username").fill("Gina");
  await page.getByLabel("Password").fill("correct horse");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("button", { name: "Menu" }).waitFor();
  expect(visit.problems()).toEqual([]);
});

test("what is wrong with a new account stands beside its field", async () => {
  const ada = await house().person("ada");
  await using visit = await house().visit();
  const { page } = visit;
  const create = page.getByRole("button", { name: "Create account" });
  const username = page.getByLabel("Username");
  const isInvalid = (label: string) =>
    page.getByLabel(label).evaluate((field) => field.ariaInvalid === "true");
  const hasFocus = (element: Element) => element === document.activeElement;
  await create.click();
  await page.getByRole("alert").getByText("Please fill this in").first().waitFor();
  expect([await isInvalid("Username"), await isInvalid("Password")]).toEqual([true, true]);
  expect(await username.evaluate(hasFocus)).toBe(true);

  await username.fill("Not a name!");
  await page.getByLabel("Password").fill("short");
  await create.click();
  await page.getByText("Letters, digits and underscores only.").waitFor();
  await page.getByText("At least 8 characters.").waitFor();

  await username.fill(ada.username);
  await page.getByLabel("Password").fill("correct horse battery");
  await create.click();
  await page.getByText("This username is taken").waitFor();
  expect(await username.evaluate(hasFocus)).toBe(true);
  expect(await isInvalid("Password")).toBe(false);
  expect(visit.problems().filter((problem) => !problem.includes("409"))).toEqual([]);
});

test("what the service refuses in a new account is told where it belongs", async () => {
  await using server = await startServer(limits({ signups_per_hour: 1 }));
  await using visit = await house().visit(null, { url: server.url });
  const { page } = visit;
  const create = async (username: string, password: string) => {
    await page.getByLabel("Username").fill(username);
    await page.getByLabel("Password").fill(password);
    await page.getByRole("button", { name: "Create account" }).click();
  };
  const isInvalid = (label: string) =>
    page.getByLabel(label).evaluate((field) => field.ariaInvalid === "true");
  await create("nora", "password1");
  await page.getByRole("alert").getByText("It is one of the most common passwords").waitFor();
  expect([await isInvalid("Username"), await isInvalid("Password")]).toEqual([false, true]);
  await create("admin", "correct horse battery");
  await page.getByRole("alert").getByText("It is reserved").waitFor();
  expect([await isInvalid("Username"), await isInvalid("Password")]).toEqual([true, false]);

  const other = { username: "first", password: "correct horse battery" };
  await post(server.url, "signUp", other);
  await create("nora", "correct horse battery");
  await page.getByRole("alert").getByText("Try again in").waitFor();
  expect([await isInvalid("Username"), await isInvalid("Password")]).toEqual([false, false]);
  expect(visit.problems().filter((problem) => !/40[0-9]|429/.test(problem))).toEqual([]);
});

test("each agent of the welcome page can be chosen", async () => {
  const nora = await house().person("nora");
  await using visit = await house().visit(nora);
  const { page } = visit;
  await page.getByRole("button", { name: /^GPT/ }).click();
  await page.getByRole("heading", { name: "GPT", level: 1 }).waitFor();
  await page.getByRole("button", { name: "Say hello" }).click();
  await message(page, "I am the built-in sandbox").waitFor();
  expect(visit.problems()).toEqual([]);
});

test("an address where nothing is shows the client's own page, with a way back", async () => {
  const [ada, bob] = await Promise.all([house().person("ada"), house().person("bob")]);
  await ada.call("startChat", { usernames: [bob.username], title: "Somewhere" });
  await using visit = await house().visit(ada, { path: "/nowhere/at/all" });
  const { page } = visit;
  await page.getByRole("heading", { name: "There is nothing here" }).waitFor();
  await page.getByText("/nowhere/at/all").waitFor();
  await page.getByRole("link", { name: /Somewhere/ }).waitFor();
  await page.getByRole("button", { name: "Back to conversations" }).click();
  await page.getByRole("heading", { name: "Choose a conversation" }).waitFor();
  expect(new URL(page.url()).pathname).toBe("/");
  // The browser itself tells of the status.
  expect(visit.problems().filter((problem) => !problem.includes("404"))).toEqual([]);
});

describe("the files of the client", () => {
  const get = (path: string, headers: Record<string, string> = {}) =>
    fetch(house().url + path, { headers, decompress: false });

  test("the page is strict about what it may do, and always fresh", async () => {
    for (const path of ["/", "/c/0198-abc", "/agents", "/settings"]) {
      const response = await get(path);
      expect([path, response.status]).toEqual([path, 200]);
      expect(response.headers.get("cache-control")).toBe("no-cache");
      const policy = response.headers.get("content-security-policy") ?? "";
      expect(policy).toContain("default-src 'none'");
      expect(policy).toContain("script-src 'self';");
      expect(policy).not.toContain("unsafe");
      const text = await response.text();
      expect(text).not.toMatch(/<script(?![^>]*src=)|<style|style=|https?:\/\//);
    }
    expect((await get("/nowhere")).status).toBe(404);
    expect((await get("/nowhere")).headers.get("content-type")).toContain("json");
    const html = { accept: "text/html,application/xhtml+xml,*/*;q=0.8" };
    const missing = await get("/nowhere", html);
    expect([missing.status, missing.headers.get("content-type")]).toEqual([
      404,
      "text/html; charset=utf-8",
    ]);
    expect(missing.headers.get("content-security-policy")).toContain("default-src 'none'");
    expect((await get("/picture.png", html)).headers.get("content-type")).toContain("json");
    expect((await get("/api/nothing", html)).status).toBe(405);
    expect((await get("/assets/nothing.js")).status).toBe(404);
  });

  test("assets are kept for good, compressed, and not sent twice", async () => {
    const [asset = ""] = (await (await get("/")).text()).match(/\/assets\/main-\w+\.js/) ?? [];
    const plain = await get(asset);
    expect(plain.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
    expect(plain.headers.get("content-encoding")).toBeNull();
    const length = (await plain.arrayBuffer()).byteLength;
    for (const encoding of ["br", "gzip"]) {
      const response = await get(asset, { "accept-encoding": encoding });
      expect(response.headers.get("content-encoding")).toBe(encoding);
      expect((await response.arrayBuffer()).byteLength).toBeLessThan(length / 2);
    }
    const etag = plain.headers.get("etag") ?? "";
    expect((await get(asset, { "if-none-match": etag })).status).toBe(304);
  });

  test("the first load is below 200 kB of script, gzipped", async () => {
    expect(firstLoad(await buildWeb())).toBeLessThan(200_000);
  });
});
