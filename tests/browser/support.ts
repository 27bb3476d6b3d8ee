/// <reference lib="dom" />
import { afterAll, beforeAll, test as bunTest } from "bun:test";
import type { OperationName } from "@parley/protocol";
import { type Person, post, signUp } from "@parley/testkit/client.ts";
import { installed } from "@parley/testkit/packages.ts";
import { type Environment, noRates, startServer, type TestServer } from "@parley/testkit/server.ts";
import {
  type Browser,
  type BrowserContextOptions,
  chromium,
  type Locator,
  type Page,
} from "playwright-core";

const CHROMIUM = "/usr/bin/chromium";
/** How long anything may take to be seen. */
const PATIENCE_MS = 60_000;
/** Of a test as a whole; it waits for its turn meanwhile, behind all others of its file. */
const TEST_MS = 600_000;

/** A real server and a real browser. */
export interface House extends AsyncDisposable {
  readonly url: string;
  readonly server: TestServer;
  readonly browser: Browser;
  /** Somebody who has an account, by a name of their own. */
  person(name: string): Promise<Person>;
  /** Somebody's browser window, signed in if they are given. */
  visit(who?: Person | null, options?: VisitOptions): Promise<Visit>;
}

export interface VisitOptions extends BrowserContextOptions {
  path?: string;
  /** Another address of the same server, such as that of a proxy. */
  url?: string;
  /** Failures of the network are part of the test. */
  networkFails?: boolean;
}

export interface Visit extends AsyncDisposable {
  readonly page: Page;
  /** Errors of the console and of scripts, and reports of the content security policy. */
  problems(): string[];
}

/** A test that has the time a browser takes, beside a few others of its file. */
export const test = (name: string, run: () => Promise<void>) =>
  bunTest.concurrent(name, () => inTurn(run), TEST_MS);

/** So many windows a small machine shows at once without falling behind. */
const AT_ONCE = 3;
let running = 0;
const waiting: (() => void)[] = [];

async function inTurn(run: () => Promise<void>): Promise<void> {
  if (running === AT_ONCE) await new Promise<void>((go) => waiting.push(go));
  else running++;
  try {
    await run();
  } finally {
    const next = waiting.shift();
    if (next) next();
    else running--;
  }
}

/** One house for all tests of a file, and what has to be in it before the first of them. */
export function sharedHouse(furnish?: (house: House) => Promise<void>): () => House {
  let house: House | undefined;
  beforeAll(async () => {
    house = await openHouse();
    await furnish?.(house);
  }, TEST_MS);
  afterAll(() => house?.[Symbol.asyncDispose](), TEST_MS);
  return () => {
    if (!house) throw new Error("the house is not open yet");
    return house;
  };
}

async function openHouse(env: Environment = {}): Promise<House> {
  const [server, browser] = await Promise.all([startServer({ ...noRates, ...env }), launch()]);
  return {
    url: server.url,
    server,
    browser,
    person: (name) => signUp(server.url, name),
    visit: (who, options) => visit(browser, server.url, who ?? null, options),
    [Symbol.asyncDispose]: async () => {
      await browser.close();
      await server[Symbol.asyncDispose]();
    },
  };
}

const launch = () =>
  chromium.launch({
    executablePath: installed(CHROMIUM, "chromium"),
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      "--no-first-run",
      "--disable-quic",
    ],
  });

async function visit(
  browser: Browser,
  ownUrl: string,
  who: Person | null,
  { path = "/", url = ownUrl, networkFails = false, ...options }: VisitOptions = {},
): Promise<Visit> {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 800 },
    reducedMotion: "reduce",
    permissions: ["clipboard-read", "clipboard-write"],
    // Each window is a new one: what is kept for the next start is work for nothing.
    serviceWorkers: "block",
    ...options,
  });
  context.setDefaultTimeout(PATIENCE_MS);
  await context.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", (event) => {
      // biome-ignore lint/suspicious/noConsole: the test listens to the console
      console.error(`content security policy: ${event.violatedDirective} ${event.blockedURI}`);
    });
  });
  if (who) {
    await context.addInitScript((token) => {
      if (!sessionStorage.getItem("arrived")) localStorage.setItem("parley.token", token);
      sessionStorage.setItem("arrived", "yes");
    }, who.token);
  }
  const page = await context.newPage();
  const problems: string[] = [];
  page.on("pageerror", (error) => problems.push(`script: ${error.message}`));
  page.on("console", (message) => {
    const expected = networkFails && /net::|WebSocket connection/.test(message.text());
    if (message.type() === "error" && !expected) problems.push(`console: ${message.text()}`);
  });
  await page.goto(url + path);
  return { page, problems: () => problems, [Symbol.asyncDispose]: () => context.close() };
}

/** Gives somebody's agent a test key, so that the built-in model answers. */
export const giveSandboxKey = (person: Person, provider = "claude") =>
  person.call("setAgentKey", { provider, api_key: "sandbox-browser-test" });

/** Calls that must not fail and whose answers do not matter. */
export async function prepare(person: Person, name: OperationName, input: unknown): Promise<void> {
  const { body } = await post(person.url, name, input, person.token);
  if (!body.ok) throw new Error(`${name}: ${body.description}`);
}

export const message = (page: Page, text: string | RegExp): Locator =>
  page.getByRole("article").filter({ hasText: text });

/** What scrolls in a conversation. */
export const scroller = (page: Page): Locator => page.getByRole("feed").locator("xpath=../..");

export const composer = (page: Page): Locator => page.getByRole("textbox", { name: "Message" });

export async function write(page: Page, text: string): Promise<void> {
  await composer(page).fill(text);
  await composer(page).press("Enter");
}
