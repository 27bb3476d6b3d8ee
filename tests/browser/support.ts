/// <reference lib="dom" />
import { beforeAll, test as bunTest } from "bun:test";
import { agentOf, groupOf, type Person, signUp } from "@parley/testkit/client.ts";
import { installed } from "@parley/testkit/packages.ts";
import type { TestServer } from "@parley/testkit/server.ts";
import { shared } from "@parley/testkit/shared.ts";
import { sharedServer } from "@parley/testkit/shared-server.ts";
import { until } from "@parley/testkit/until.ts";
import {
  type Browser,
  type BrowserContextOptions,
  chromium,
  type Locator,
  type Page,
} from "playwright-core";
import { openWindows } from "./windows.ts";

/** The browser without its own windows, which costs a third of the CPU time for each page. */
const CHROMIUM = "chromium-headless-shell";
/** Includes the time that a test waits for the other tests of its file. */
const TEST_TIMEOUT_MS = 600_000;
/** More windows at once slow each other down on a small machine. */
const MAX_CONCURRENT_TESTS = 3;

export const PHONE = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true };

/** Chromium uses only the last list of features, so this one begins with the list of Playwright. */
const DISABLED_FEATURES = [
  "AvoidUnnecessaryBeforeUnloadCheckSync",
  "DestroyProfileOnBrowserClose",
  "HttpsUpgrades",
  "HttpsFirstBalancedModeAutoEnable",
  "LensOverlay",
  "MediaRouter",
  "PaintHolding",
  "ThirdPartyStoragePartitioning",
  "AvoidCorsURLLoaderRestartOnRedirect",
  "OptimizationHints",
  "NetworkTimeServiceQuerying",
  "AimEnabled",
  "PreconnectToSearch",
  // Every window loads these pages of the address bar, which takes more than a second of CPU time.
  "WebUIOmniboxPopup",
  "WebUIOmniboxAimPopup",
  "WebUIOmniboxFullPopup",
  // Every window starts a process for another site, which no test visits.
  "SpareRendererForSitePerProcess",
];

/** A real server and a real browser. */
export interface Harness extends AsyncDisposable {
  readonly url: string;
  readonly server: TestServer;
  readonly browser: Browser;
  /** Signs somebody up; the username begins with the name and is unique. */
  person(name: string): Promise<Person>;
  /** Opens a browser window, signed in as the given person if there is one. */
  visit(who?: Person | null, options?: VisitOptions): Promise<Visit>;
}

export interface VisitOptions extends BrowserContextOptions {
  path?: string;
  /** Another address of the same server, such as that of a proxy. */
  url?: string;
  /** The test expects network errors, so they are not reported as problems. */
  networkFails?: boolean;
}

export interface Visit extends AsyncDisposable {
  readonly page: Page;
  /** Errors of the console and of scripts, and violations of the content security policy. */
  problems(): string[];
}

/** A test with a timeout for browsers, run concurrently with a few others of its file. */
export const test = (name: string, run: () => Promise<void>) =>
  bunTest.concurrent(name, () => withSlot(run), TEST_TIMEOUT_MS);

let running = 0;
const waiting: (() => void)[] = [];

async function withSlot(run: () => Promise<void>): Promise<void> {
  if (running === MAX_CONCURRENT_TESTS) await new Promise<void>((start) => waiting.push(start));
  else running++;
  try {
    await run();
  } finally {
    const next = waiting.shift();
    if (next) next();
    else running--;
  }
}

/** The harness that the files of a process share, which `setUp` prepares for the tests of this one. */
export function sharedHarness(setUp?: (harness: Harness) => Promise<void>): () => Harness {
  let harness: Harness | undefined;
  beforeAll(async () => {
    harness = await shared("harness", startHarness);
    await setUp?.(harness);
  }, TEST_TIMEOUT_MS);
  return () => {
    if (!harness) throw new Error("the harness has not started yet");
    return harness;
  };
}

async function startHarness(): Promise<Harness> {
  const [server, browser] = await Promise.all([sharedServer(), launch()]);
  const openWindow = openWindows(browser);
  return {
    url: server.url,
    server,
    browser,
    person: (name) => signUp(server.url, name),
    visit: (who, options) => visit(openWindow, server.url, who ?? null, options),
    [Symbol.asyncDispose]: () => browser.close(),
  };
}

export const launch = () =>
  chromium.launch({
    executablePath: installed(CHROMIUM, CHROMIUM),
    args: [
      "--no-sandbox",
      "--disable-gpu",
      // Together they cost 7 % less CPU time: no page here lives long enough to gain by threads.
      "--disable-software-rasterizer",
      "--js-flags=--single-threaded",
      // Otherwise every second page of a window, another port and each page of an error starts a process.
      "--process-per-site",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      "--no-first-run",
      "--disable-quic",
      `--disable-features=${DISABLED_FEATURES.join(",")}`,
    ],
  });

export async function visit(
  openWindow: ReturnType<typeof openWindows>,
  serverUrl: string,
  who: Person | null,
  { path = "/", url = serverUrl, networkFails = false, ...options }: VisitOptions = {},
): Promise<Visit> {
  const { page, problems, release } = await openWindow(url, options);
  if (who) await page.evaluate((token) => localStorage.setItem("parley.token", token), who.token);
  await page.goto(url + path);
  const isExpected = (problem: string) =>
    networkFails && /^console: .*(net::|WebSocket connection)/.test(problem);
  return {
    page,
    problems: () => problems.filter((problem) => !isExpected(problem)),
    [Symbol.asyncDispose]: release,
  };
}

/** Stores a key with which the built-in sandbox model answers for somebody's agent. */
export const giveSandboxKey = (person: Person, provider = "claude") =>
  person.call("setAgentKey", { provider, api_key: "sandbox-browser-test" });

/** Ada in a direct conversation with her agent, which has a sandbox key. */
export async function agentChat({ person }: Harness) {
  const ada = await person("ada");
  await giveSandboxKey(ada);
  const chat = await ada.call("startChat", { usernames: [agentOf(ada)] });
  return { ada, chat, path: `/c/${chat.id}` };
}

/** Two people who have no conversation yet. */
export async function twoPeople({ person }: Harness) {
  const [ada, bob] = await Promise.all([person("ada"), person("bob")]);
  return { ada, bob };
}

/** Two people in a group without a title. */
export async function groupChat(harness: Harness) {
  const { ada, bob } = await twoPeople(harness);
  const chat = await groupOf(ada, bob);
  return { ada, bob, chat, path: `/c/${chat.id}` };
}

export const say = (who: Person, chat: { id: string }, content: string) =>
  who.call("sendMessage", { chat_id: chat.id, content });

export const message = (page: Page, text: string | RegExp): Locator =>
  page.getByRole("article").filter({ hasText: text });

/**
 * Clicks a button of a message's toolbar, which is shown while the pointer is over the message. What is
 * loaded meanwhile may move the message away from the pointer.
 */
export function pressOn(article: Locator, name: string): Promise<void> {
  const button = article.getByRole("button", { name });
  const click = async () => {
    await article.hover();
    return button.click({ timeout: 5000 }).then(
      () => true,
      // On a busy machine it may have been pressed in time although the page answers late.
      async () => (await button.getAttribute("aria-expanded")) === "true",
    );
  };
  return until(click, `the button «${name}»`);
}

/** The element that scrolls in a conversation. */
export const scroller = (page: Page): Locator => page.getByRole("feed").locator("xpath=../..");

export const composer = (page: Page): Locator => page.getByRole("textbox", { name: "Message" });

/** Does something, and waits for what it shows for a moment, which may be over when it has returned. */
export const showsBriefly = (shown: Locator, act: () => Promise<void>) =>
  Promise.all([shown.waitFor(), act()]);

/** Sends a message by the composer. */
export async function write(page: Page, text: string): Promise<void> {
  await composer(page).fill(text);
  await composer(page).press("Enter");
}

export const hasFocus = (locator: Locator): Promise<boolean> =>
  locator.evaluate((element) => element === document.activeElement);

/** Waits for the focus, which the page moves after it has removed the element that had it. */
export async function untilFocused(locator: Locator): Promise<void> {
  const element = await locator.elementHandle();
  await locator.page().waitForFunction((each) => each === document.activeElement, element);
}

/** Waits for one frame of the page: the pause between two looks at something that changes. */
export const nextFrame = (page: Page): Promise<unknown> =>
  page.evaluate(() => new Promise(requestAnimationFrame));

/** Presses «back». The page adds the history entry of a dialog or menu just after it shows it. */
export async function goBack(page: Page): Promise<void> {
  await nextFrame(page);
  await page.evaluate(() => new Promise((resolve) => setTimeout(resolve)));
  await page.goBack();
}

/** Refuses the calls in the returned set, from the next load of the page on. */
export async function refuseCalls(page: Page): Promise<Set<string>> {
  const refused = new Set<string>();
  await page.routeWebSocket("**", (socket) => {
    const server = socket.connectToServer();
    socket.onMessage((frame) => {
      const { method, id } = JSON.parse(String(frame));
      if (!refused.has(method)) return server.send(frame);
      const error = { code: "payload_too_large", message: "the reply is too large" };
      socket.send(JSON.stringify({ id, ok: false, error }));
    });
  });
  return refused;
}
