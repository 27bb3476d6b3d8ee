import { describe, expect } from "bun:test";
import { post } from "@parley/testkit/client.ts";
import { limits, startServer } from "@parley/testkit/server.ts";
import type { Page } from "playwright-core";
import { buildWeb, firstLoads } from "../../packages/web/build.ts";
import { hasFocus, message, sharedHarness, test, twoPeople } from "./support.ts";

const harness = sharedHarness();

async function createAccount(page: Page, name: string, username: string): Promise<void> {
  await page.getByLabel("Your name").fill(name);
  await page.getByLabel("Username").fill(username);
  await page.getByLabel("Password").fill("correct horse");
  await page.getByRole("button", { name: "Create account" }).click();
}

async function signOut(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Menu", exact: true }).click();
  await page.getByRole("menuitem", { name: "Sign out" }).click();
  await page.getByRole("heading", { name: "Welcome back" }).waitFor();
}

const isInvalid = (page: Page, label: string) =>
  page.getByLabel(label).evaluate((field) => field.ariaInvalid === "true");

test("a new account gets an answer from its agent, signs out and signs in again", async () => {
  await using visit = await harness().visit();
  const { page } = visit;
  await createAccount(page, "Nora Newcomer", "nora");
  await page.getByRole("button", { name: "Try your agent now" }).click();
  await page.getByRole("button", { name: "Say hello" }).click();
  await message(page, "I am the built-in sandbox").waitFor();

  await signOut(page);
  await page.getByLabel("Username").fill("nora");
  await page.getByLabel("Password").fill("wrong horse");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("alert").getByText("do not fit together").waitFor();
  await page.getByLabel("Password").fill("correct horse");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("navigation", { name: "Conversation list" }).getByRole("link").click();
  await message(page, "Hello! Who are you?").first().waitFor();
  // The browser logs the refused sign-in.
  expect(visit.problems().filter((problem) => !problem.includes("401"))).toEqual([]);
});

test("a name at the limit is said to be, and hides no agent's name", async () => {
  await using visit = await harness().visit();
  const { page } = visit;
  await createAccount(page, "Maximiliana ".repeat(6).slice(0, 64), "m!");
  await page.getByText("At most 64 characters.").waitFor();
  await page.getByLabel("Username").fill("maximiliana");
  await page.getByRole("button", { name: "Create account" }).click();
  await page.getByRole("button", { name: "Menu", exact: true }).waitFor();
  await page.goto(`${harness().url}/agents`);
  await page.getByRole("heading", { name: "Claude", exact: true }).waitFor();
  await page.getByRole("heading", { name: "GPT", exact: true }).waitFor();
  expect(visit.problems()).toEqual([]);
});

test("a tab with the sign-in page follows when somebody signs in in another tab", async () => {
  await using visit = await harness().visit();
  const { page } = visit;
  const other = await page.context().newPage();
  await other.goto(`${harness().url}/settings`);
  await other.getByLabel("Password").waitFor();
  await createAccount(page, "Tabea", "tabea");
  await other.getByRole("heading", { name: "Settings", level: 1 }).waitFor();
  await signOut(page);
  await other.getByRole("heading", { name: "Welcome back" }).waitFor();
  expect(visit.problems()).toEqual([]);
});

test("failed sign-ins elsewhere do not lock out a browser that has signed in before", async () => {
  await using visit = await harness().visit();
  const { page } = visit;
  await createAccount(page, "Gina", "gina");
  await signOut(page);
  const guess = () =>
    post(harness().url, "signIn", { username: "gina", password: "wrong horse battery" });
  while ((await guess()).status !== 429);
  await page.getByLabel("Username").fill("Gina");
  await page.getByLabel("Password").fill("correct horse");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("button", { name: "Menu", exact: true }).waitFor();
  expect(visit.problems()).toEqual([]);
});

test("mistakes in the sign-up form are shown beside their fields", async () => {
  const ada = await harness().person("ada");
  await using visit = await harness().visit();
  const { page } = visit;
  const create = page.getByRole("button", { name: "Create account" });
  const username = page.getByLabel("Username");
  await create.click();
  await page.getByRole("alert").getByText("Please fill this in").first().waitFor();
  expect([await isInvalid(page, "Username"), await isInvalid(page, "Password")]).toEqual([
    true,
    true,
  ]);
  expect(await hasFocus(username)).toBe(true);

  await username.fill("Not a name!");
  await page.getByLabel("Password").fill("short");
  await create.click();
  await page.getByText("Letters, digits and underscores only.").waitFor();
  await page.getByText("At least 8 characters.").waitFor();

  await username.fill(ada.username);
  await page.getByLabel("Password").fill("correct horse battery");
  await create.click();
  await page.getByText("This username is taken").waitFor();
  expect(await hasFocus(username)).toBe(true);
  expect(await isInvalid(page, "Password")).toBe(false);
  expect(visit.problems().filter((problem) => !problem.includes("409"))).toEqual([]);
});

test("the reasons of a refused sign-up are shown beside their fields", async () => {
  await using server = await startServer(limits({ signups_per_hour: 1 }));
  await using visit = await harness().visit(null, { url: server.url });
  const { page } = visit;
  const create = async (username: string, password: string) => {
    await page.getByLabel("Username").fill(username);
    await page.getByLabel("Password").fill(password);
    await page.getByRole("button", { name: "Create account" }).click();
  };
  await create("nora", "password1");
  await page.getByRole("alert").getByText("It is one of the most common passwords").waitFor();
  expect([await isInvalid(page, "Username"), await isInvalid(page, "Password")]).toEqual([
    false,
    true,
  ]);
  await create("admin", "correct horse battery");
  await page.getByRole("alert").getByText("It is reserved").waitFor();
  expect([await isInvalid(page, "Username"), await isInvalid(page, "Password")]).toEqual([
    true,
    false,
  ]);

  const other = { username: "first", password: "correct horse battery" };
  await post(server.url, "signUp", other);
  await create("nora", "correct horse battery");
  await page.getByRole("alert").getByText("Try again in").waitFor();
  expect([await isInvalid(page, "Username"), await isInvalid(page, "Password")]).toEqual([
    false,
    false,
  ]);
  expect(visit.problems().filter((problem) => !/40[0-9]|429/.test(problem))).toEqual([]);
});

test("every agent on the welcome page can be chosen", async () => {
  const nora = await harness().person("nora");
  await using visit = await harness().visit(nora);
  const { page } = visit;
  await page.getByRole("button", { name: /^GPT/ }).click();
  await page.getByRole("heading", { name: "GPT", level: 1 }).waitFor();
  await page.getByRole("button", { name: "Say hello" }).click();
  await message(page, "I am the built-in sandbox").waitFor();
  expect(visit.problems()).toEqual([]);
});

test("an unknown address shows a page of the client with a way back", async () => {
  const { ada, bob } = await twoPeople(harness());
  await ada.call("startChat", { usernames: [bob.username], title: "Somewhere" });
  await using visit = await harness().visit(ada, { path: "/nowhere/at/all" });
  const { page } = visit;
  await page.getByRole("heading", { name: "There is nothing here" }).waitFor();
  await page.getByText("/nowhere/at/all").waitFor();
  await page.getByRole("link", { name: /Somewhere/ }).waitFor();
  await page.getByRole("button", { name: "Back to conversations" }).click();
  await page.getByRole("heading", { name: "Choose a conversation" }).waitFor();
  expect(new URL(page.url()).pathname).toBe("/");
  // The browser logs the status.
  expect(visit.problems().filter((problem) => !problem.includes("404"))).toEqual([]);
});

test("the page shows its skeleton before its scripts and styles have loaded", async () => {
  const ada = await harness().person("ada");
  for (const who of [null, ada]) {
    await using visit = await harness().visit(who);
    const { page } = visit;
    const loaded = Promise.withResolvers<void>();
    await page.route(/\/assets\/.*\.(?:css|js)$/, async (route) => {
      await loaded.promise;
      await route.continue();
    });
    await page.goto(harness().url, { waitUntil: "commit" });
    await page.locator("#root > [aria-hidden] > p", { hasText: "Parley" }).waitFor();
    await page.waitForFunction(() => performance.getEntriesByName("first-contentful-paint").length);
    expect(await page.locator("main").count()).toBe(0);
    loaded.resolve();
    await page.getByRole("heading", { name: who ? /^Hello/ : "Create your account" }).waitFor();
    expect(visit.problems()).toEqual([]);
  }
});

test("a password that is typed can be shown and hidden again", async () => {
  await using visit = await harness().visit();
  const { page } = visit;
  const field = page.getByLabel("Password");
  await field.fill("correct horse");
  expect(await field.getAttribute("type")).toBe("password");
  await field.press("Tab");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Hide Password" }).waitFor();
  expect([await field.getAttribute("type"), await field.inputValue()]).toEqual([
    "text",
    "correct horse",
  ]);
  await page.getByRole("button", { name: "Hide Password" }).click();
  expect(await field.getAttribute("type")).toBe("password");
  expect(visit.problems()).toEqual([]);
});

test("the icon of the tab counts unread messages", async () => {
  const { ada, bob } = await twoPeople(harness());
  const chat = await ada.call("startChat", { usernames: [bob.username] });
  await using visit = await harness().visit(ada);
  const { page } = visit;
  await page.getByRole("link", { name: /No messages yet/ }).waitFor();
  const icon = () => page.locator("link[rel=icon]").getAttribute("href");
  const plain = await icon();
  expect(plain).toMatch(/\/assets\/icon-192-\w+\.png$/);
  const shown = new Set([plain]);
  for (const text of ["One", "Two"]) {
    await bob.call("sendMessage", { chat_id: chat.id, content: text });
    await page.getByRole("link", { name: new RegExp(`${text}$|${text} `) }).waitFor();
    shown.add(await icon());
  }
  expect(shown.size).toBe(3);
  await page.getByRole("link", { name: /Two/ }).click();
  await page.waitForFunction((path) => {
    const href = document.querySelector<HTMLLinkElement>("link[rel=icon]")?.href;
    return href === path;
  }, plain);
  expect(visit.problems()).toEqual([]);
});

describe("the files of the client", () => {
  const get = (path: string, headers: Record<string, string> = {}) =>
    fetch(harness().url + path, { headers, decompress: false });

  test("the page has a strict content security policy and is revalidated", async () => {
    for (const path of ["/", "/c/0198-abc", "/agents", "/settings"]) {
      const response = await get(path);
      expect([path, response.status]).toEqual([path, 200]);
      expect(response.headers.get("cache-control")).toBe("no-cache");
      const policy = response.headers.get("content-security-policy") ?? "";
      expect(policy).toContain("default-src 'none'");
      expect(policy).not.toContain("unsafe");
      const text = await response.text();
      // What stands in the page itself is allowed by its hash alone.
      for (const tag of ["script", "style"]) {
        const [own = "", ...more] =
          text.match(new RegExp(`(?<=<${tag}>)[^]*?(?=</${tag}>)`, "g")) ?? [];
        expect(more).toEqual([]);
        const hash = new Bun.CryptoHasher("sha256").update(own).digest("base64");
        expect(policy).toContain(`${tag}-src 'self' 'sha256-${hash}';`);
      }
      const outside = text.replace('xmlns="http://www.w3.org/2000/svg"', "");
      expect(outside).not.toMatch(/style=|https?:\/\//);
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

  test("assets are immutable, compressed and answered with 304 if unchanged", async () => {
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

  test("the manifest has icons for systems that show SVG, PNG or their own shape", async () => {
    const page = await (await get("/")).text();
    const [manifest = ""] = /\/assets\/manifest-\w+\.webmanifest/.exec(page) ?? [];
    const { icons } = (await (await get(manifest)).json()) as {
      icons: { src: string; type: string; sizes: string; purpose: string }[];
    };
    expect(icons.map(({ sizes, purpose }) => `${sizes} ${purpose}`)).toEqual([
      "any any",
      "192x192 any",
      "512x512 any",
      "512x512 maskable",
    ]);
    for (const { src, type } of icons) {
      const response = await get(src);
      expect([src, response.status, response.headers.get("content-type")]).toEqual([
        src,
        200,
        type,
      ]);
    }
  });

  test("the first loads take at most 61, 76 and 150 kB of gzipped script", async () => {
    const { signIn, list, conversation } = firstLoads(await buildWeb());
    expect(signIn).toBeLessThan(61_000);
    expect(list).toBeLessThan(76_000);
    expect(conversation).toBeLessThan(150_000);
  });
});
