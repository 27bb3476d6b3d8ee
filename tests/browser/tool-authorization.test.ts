import { afterAll, beforeAll, expect } from "bun:test";
import { type Person, people } from "@parley/testkit/client.ts";
import { noRates, startServer, type TestServer } from "@parley/testkit/server.ts";
import type { Page } from "playwright-core";
import { startProtectedServer } from "../tool-issuer.ts";
import { sharedHarness, test, type Visit } from "./support.ts";

const harness = sharedHarness();
let server: TestServer;
beforeAll(async () => {
  server = await startServer({ ...noRates, PARLEY_PRIVATE_ADDRESSES: "allow" });
});
afterAll(() => server[Symbol.asyncDispose]());

/** A new person with a tool server that is not authorized yet. */
async function protectedServer() {
  const made = await startProtectedServer();
  const [person] = await people(server.url, "ada");
  const { id } = await person.call("addToolServer", { name: "Weather", url: made.tools.url });
  const { url } = await person.call("authorizeToolServer", { server_id: id });
  const status = async () => (await person.call("getToolServers")).items[0]?.status;
  return { ...made, person, link: url, status };
}

/** The window of a person, or of nobody. The pages of the issuer ask for fonts that cannot be loaded. */
async function open(who: Person | null): Promise<Visit> {
  const visit = await harness().visit(who, { url: server.url, networkFails: true });
  await visit.page.context().route(/googleapis/, (route) => route.abort());
  return visit;
}

/** Follows the link to the authorization server, and signs in there. */
async function signIn(page: Page, link: string): Promise<void> {
  await page.goto(link);
  await page.getByPlaceholder("Enter any login").fill("ada");
  await page.getByPlaceholder("and password").fill("any");
  await page.getByRole("button", { name: "Sign-in" }).click();
}

const agree = (page: Page) => page.getByRole("button", { name: "Continue" }).click();

test("a person authorizes a tool server, and the code does not stay in the address", async () => {
  await using made = await protectedServer();
  await using visit = await open(made.person);
  const { page } = visit;
  await signIn(page, made.link);
  await agree(page);
  await page.getByText("Weather is authorized.").waitFor();
  expect(page.url()).toBe(`${server.url}/settings/tool-servers`);
  expect(await made.status()).toBe("ready");
  expect(visit.problems()).toEqual([]);
});

test("somebody who opens the link of another person gives that person nothing", async () => {
  await using made = await protectedServer();
  const [tricked] = await people(server.url, "bob");
  await using visit = await open(tricked);
  const { page } = visit;
  await signIn(page, made.link);
  await agree(page);
  await page.getByText("another person began this").waitFor();
  expect(await made.status()).toBe("unauthorized");
  // The browser logs the refusal.
  expect(visit.problems().filter((problem) => !problem.includes("403"))).toEqual([]);
});

test("where nobody is signed in, the page says so", async () => {
  await using made = await protectedServer();
  await using visit = await open(null);
  const { page } = visit;
  await signIn(page, made.link);
  await agree(page);
  await page.getByRole("alert").getByText("nobody is signed in here").waitFor();
  expect(page.url()).toBe(`${server.url}/settings/tool-servers`);
  expect(await made.status()).toBe("unauthorized");
  expect(visit.problems()).toEqual([]);
});

test("somebody who does not agree is told that nothing was authorized", async () => {
  await using made = await protectedServer();
  await using visit = await open(made.person);
  const { page } = visit;
  await signIn(page, made.link);
  await page.getByRole("link", { name: "Cancel" }).click();
  await page.getByText("Weather was not authorized.").waitFor();
  expect(await made.status()).toBe("unauthorized");
  expect(visit.problems()).toEqual([]);
});
