import { afterAll, beforeAll, expect } from "bun:test";
import { Backend, serviceKeySetting } from "@parley/testkit/backend.ts";
import { post, signUp } from "@parley/testkit/client.ts";
import { limits, noRates, startServer, type TestServer } from "@parley/testkit/server.ts";
import type { Page } from "playwright-core";
import { createVault } from "../../packages/server/src/security/vault.ts";
import { expectNoViolations } from "./axe.ts";
import { type RealIssuer, startIssuer } from "./issuer.ts";
import { sharedHarness, test, type Visit } from "./support.ts";

const MASTER_KEY = Buffer.alloc(32, 7);
const harness = sharedHarness();
let issuer: RealIssuer;
let server: TestServer;
let backend: Backend;

const settingsFor = ({ url }: RealIssuer) => ({
  ...noRates,
  ...serviceKeySetting(),
  PARLEY_OIDC_ISSUER: url,
  PARLEY_OIDC_CLIENT_ID: "parley",
  PARLEY_OIDC_NAME: "Example",
  PARLEY_MASTER_KEY: MASTER_KEY.toString("base64"),
});

beforeAll(async () => {
  issuer = await startIssuer();
  server = await startServer(settingsFor(issuer));
  backend = new Backend(server.url);
  issuer.register("parley", [`${server.url}/sign-in`]);
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await issuer[Symbol.asyncDispose]();
});

/** Opens the page of the server. The pages of the issuer ask for fonts that cannot be loaded. */
async function open(url = server.url, path = "/"): Promise<Visit> {
  const visit = await harness().visit(null, { url, path, networkFails: true });
  await visit.page.context().route(/googleapis/, (route) => route.abort());
  return visit;
}

const withIssuer = (page: Page) => page.getByRole("button", { name: "Sign in with Example" });

/** Signs in at the issuer, whose page is shown. */
async function signInAtIssuer(page: Page, name: string): Promise<void> {
  await page.getByPlaceholder("Enter any login").fill(name);
  await page.getByPlaceholder("and password").fill("any");
  await page.getByRole("button", { name: "Sign-in" }).click();
}

async function allow(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Continue" }).click();
}

/** Signs in with the issuer, where nobody is signed in yet. */
async function enter(page: Page, name: string): Promise<void> {
  await withIssuer(page).click();
  await signInAtIssuer(page, name);
  await allow(page);
}

const menu = (page: Page) => page.getByRole("button", { name: "Menu", exact: true });
const notice = (page: Page, text: string) => page.getByRole("alert").getByText(text);

/** The @username on the page. */
const handle = (page: Page, username: string) => page.getByText(`@${username}`, { exact: true });

async function signOut(page: Page): Promise<void> {
  await menu(page).click();
  await page.getByRole("menuitem", { name: "Sign out" }).click();
  await page.getByRole("heading", { name: "Welcome back" }).waitFor();
}

test("a newcomer signs in with the issuer, signs out, and comes back", async () => {
  await using visit = await open();
  const { page } = visit;
  await withIssuer(page).waitFor();
  await expectNoViolations(page);
  await enter(page, "nora");
  await handle(page, "nora").waitFor();
  await page.getByText("nora of the issuer").first().waitFor();
  // Neither the code nor anything of the issuer stays in the browser.
  expect(page.url()).toBe(`${server.url}/`);
  const stored = await page.evaluate(() => Object.keys(localStorage).join(" "));
  expect(stored).not.toContain("parley.oidc");
  await page.goto(`${server.url}/settings/security`);
  await page.getByText("This device", { exact: true }).waitFor();
  await page.getByRole("heading", { name: "Password" }).waitFor({ state: "detached" });

  await signOut(page);
  // Whoever signs in next does not begin at the page of somebody else.
  await page.waitForURL(`${server.url}/`);
  // The session at the issuer still exists, so it asks nothing.
  await withIssuer(page).click();
  await handle(page, "nora").waitFor();
  const { items } = await backend.call("getAuditLog", { account: "nora" });
  expect(items.filter(({ action }) => action === "sign_in")).toHaveLength(2);
  expect(visit.problems()).toEqual([]);
});

test("a sign-in is finished once: the issuer does not accept its code again", async () => {
  await using visit = await open();
  const { page } = visit;
  const finishing = page.waitForRequest(/finishOidcSignIn/);
  await enter(page, "olive");
  const answer = (await finishing).postDataJSON();
  await handle(page, "olive").waitFor();
  const { status, body } = await post(server.url, "finishOidcSignIn", answer);
  expect({ status, body }).toMatchObject({
    status: 401,
    body: { description: "unauthorized: the sign-in service did not accept the code" },
  });
  expect(visit.problems()).toEqual([]);
});

test("a username that is taken by a password account gets a suffix", async () => {
  const owner = await signUp(server.url, "taken");
  await using visit = await open();
  const { page } = visit;
  await enter(page, owner.username);
  await handle(page, `${owner.username}_2`).waitFor();
  expect(await owner.call("getMe")).toMatchObject(owner.account);
  expect(visit.problems()).toEqual([]);
});

test("the page from which somebody signs in is shown again afterwards", async () => {
  await using visit = await open(server.url, "/agents");
  const { page } = visit;
  await enter(page, "pia");
  await page.getByRole("heading", { name: "My agents", level: 1 }).waitFor();
  expect(new URL(page.url()).pathname).toBe("/agents");
  expect(visit.problems()).toEqual([]);
});

test("somebody who does not consent is told so, and can try again", async () => {
  await using visit = await open();
  const { page } = visit;
  await withIssuer(page).click();
  await signInAtIssuer(page, "carl");
  await page.getByRole("link", { name: "Cancel" }).click();
  await notice(page, "The sign-in was cancelled.").waitFor();
  expect(page.url()).toBe(`${server.url}/`);
  await withIssuer(page).click();
  await allow(page);
  await handle(page, "carl").waitFor();
  await signOut(page);
  expect(await page.getByRole("alert").count()).toBe(0);
  expect(visit.problems()).toEqual([]);
});

test("a sign-in that took too long is refused", async () => {
  const sealed = createVault([MASTER_KEY]);
  const binding = { owner_id: 0, provider: "oidc sign-in" };
  await using visit = await open();
  const { page } = visit;
  await page.route("**/api/startOidcSignIn", async (route) => {
    const response = await route.fetch();
    const body = await response.json();
    const flow = JSON.parse(sealed.open(body.result.flow, binding));
    const late = JSON.stringify({ ...flow, expires_at: Date.now() - 1 });
    body.result.flow = sealed.seal(late, binding);
    await route.fulfill({ response, json: body });
  });
  await enter(page, "lars");
  await notice(page, "The sign-in took too long. Please try again.").waitFor();
  // The browser logs the refusal.
  expect(visit.problems().filter((problem) => !problem.includes("401"))).toEqual([]);
});

test("a link with the answer of somebody else's sign-in signs nobody in", async () => {
  await using mine = await open();
  let link = "";
  await mine.page.route("**/api/finishOidcSignIn", (route) => {
    const { flow: _, ...answer } = route.request().postDataJSON();
    link = `${server.url}/sign-in?${new URLSearchParams(answer)}`;
    return route.abort();
  });
  await enter(mine.page, "mallory");
  await mine.page.getByRole("alert").waitFor();

  await using visit = await open();
  const { page } = visit;
  await page.goto(link);
  await notice(page, "This sign-in was not begun in this browser.").waitFor();
  expect(page.url()).toBe(`${server.url}/`);
  await page.goto(`${server.url}/sign-in?error=access_denied&error_description=Call+0900&state=x`);
  await notice(page, "This sign-in was not begun in this browser.").waitFor();
  expect(await page.getByText("0900").count()).toBe(0);
  // Somebody who is signed in stays signed in.
  await enter(page, "vera");
  await handle(page, "vera").waitFor();
  await page.goto(link);
  await page.getByText("This sign-in was not begun in this browser.").waitFor();
  await handle(page, "vera").waitFor();
  expect(visit.problems()).toEqual([]);
});

test("two tabs sign in at the same time", async () => {
  await using visit = await open();
  const { page } = visit;
  await withIssuer(page).click();
  await page.getByPlaceholder("Enter any login").waitFor();
  const second = await page.context().newPage();
  await second.goto(server.url);
  await withIssuer(second).click();
  await signInAtIssuer(second, "tina");
  await allow(second);
  await handle(second, "tina").waitFor();
  await signInAtIssuer(page, "tina");
  await Promise.race([handle(page, "tina").waitFor(), allow(page)]);
  await handle(page, "tina").waitFor();
  await second.reload();
  await handle(second, "tina").waitFor();
  expect(visit.problems()).toEqual([]);
});

test("an issuer that is down is named, before and after the visit to it", async () => {
  await using failing = await startIssuer();
  await using own = await startServer(settingsFor(failing));
  await using visit = await open(own.url);
  const { page } = visit;
  const unreachable = notice(page, "The sign-in service cannot be reached. Please try again.");
  await withIssuer(page).click();
  await unreachable.waitFor();
  failing.register("parley", [`${own.url}/sign-in`]);
  await page.route("**/api/finishOidcSignIn", (route) => {
    failing.setDown(true);
    return route.continue();
  });
  await enter(page, "ida");
  await unreachable.waitFor();
  failing.setDown(false);
  await page.unroute("**/api/finishOidcSignIn");
  await withIssuer(page).click();
  await handle(page, "ida").waitFor();
  expect(visit.problems().filter((problem) => !problem.includes("503"))).toEqual([]);
});

test("somebody of the issuer signs in there again before a sensitive change", async () => {
  await using own = await startIssuer();
  // The issuer's clock is not moved, so only by a little.
  await using moved = await startServer({ ...settingsFor(own), ...limits({ confirm_minutes: 1 }) });
  own.register("parley", [`${moved.url}/sign-in`]);
  await using visit = await open(moved.url, "/settings/data");
  const { page } = visit;
  await enter(page, "petra");
  const download = page.getByRole("button", { name: "Download my data" });
  await download.waitFor();
  await moved.moveClock(60_000);
  await download.click();
  await page.getByRole("dialog", { name: "Is it you?" }).waitFor();
  await withIssuer(page).click();
  // The session at the issuer still exists, and yet it asks.
  await signInAtIssuer(page, "petra");
  await page.getByRole("heading", { name: "Settings" }).waitFor();
  const downloading = page.waitForEvent("download");
  await download.click();
  await downloading;
});

test("where passwords are switched off, the page shows only the button", async () => {
  await using own = await startServer({
    ...settingsFor(issuer),
    PARLEY_PASSWORD_SIGN_IN: "off",
  });
  await using visit = await open(own.url);
  const { page } = visit;
  await withIssuer(page).waitFor();
  expect(await page.getByRole("textbox").count()).toBe(0);
  expect(await page.getByRole("button").count()).toBe(1);
  await expectNoViolations(page);
  expect(visit.problems()).toEqual([]);
});

test("where sign-up is closed, the page does not offer it", async () => {
  await using own = await startServer({ PARLEY_SIGNUP: "closed" });
  await using visit = await open(own.url);
  const { page } = visit;
  await page.getByRole("heading", { name: "Welcome back" }).waitFor();
  expect(await page.getByRole("button").allTextContents()).toEqual([
    "Show Password",
    "Forgot your password?",
    "Sign in",
  ]);
  expect(visit.problems()).toEqual([]);
});

test("a suspended person is told so: when the session ends, and at every sign-in", async () => {
  const suspended = "This account is suspended.";
  const person = await signUp(server.url, "sus");
  await using visit = await harness().visit(person, { url: server.url });
  const { page } = visit;
  await handle(page, person.username).waitFor();
  await backend.call("suspendAccount", { username: person.username });
  await notice(page, suspended).waitFor();

  await page.reload();
  const toSignIn = page.getByRole("button", { name: "Sign in", exact: true });
  const signUpForm = page.getByRole("heading", { name: "Create your account" });
  await signUpForm.or(page.getByRole("heading", { name: "Welcome back" })).waitFor();
  if (await signUpForm.isVisible()) await toSignIn.click();
  await page.getByLabel("Username").fill(person.username);
  await page.getByLabel("Password").fill("correct horse battery");
  await toSignIn.click();
  await notice(page, suspended).waitFor();
  // The browser logs the refusals.
  expect(visit.problems().filter((problem) => !problem.includes("403"))).toEqual([]);
});

test("a suspended person of the issuer is told so", async () => {
  await using visit = await open();
  const { page } = visit;
  await enter(page, "sven");
  await handle(page, "sven").waitFor();
  await signOut(page);
  await backend.call("suspendAccount", { username: "sven" });
  await withIssuer(page).click();
  await notice(page, "This account is suspended.").waitFor();
  expect(visit.problems().filter((problem) => !problem.includes("403"))).toEqual([]);
});
