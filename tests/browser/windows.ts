/// <reference lib="dom" />
import type {
  Browser,
  BrowserContext,
  BrowserContextOptions,
  CDPSession,
  Page,
} from "playwright-core";

/** How long a test waits for something to appear. */
const WAIT_TIMEOUT_MS = 120_000;
/** Whoever uses these may leave something behind in the window, so no other test uses it again. */
const LASTING = new Set<string | symbol>([
  "addInitScript",
  "clock",
  "context",
  "exposeFunction",
  "route",
  "routeWebSocket",
]);
/** A small page of the client's origin in the same process: the client's next load needs no new one. */
const EMPTY_PAGE = "/service-worker.js";
const DESKTOP = { viewport: { width: 1280, height: 800 } };

/** A browser window of a test. */
export interface BrowserWindow {
  readonly page: Page;
  /** Errors of the console and of scripts, and violations of the content security policy. */
  readonly problems: string[];
  /** Ends the use by the test. */
  release(): Promise<void>;
}

/**
 * Windows for the tests of a file. A new window costs three times the CPU time of one that has
 * loaded the client before, so windows are emptied and used again, unless a test may have changed one
 * for good or has options of its own.
 */
export function openWindows(browser: Browser) {
  const unused = new Map<string, Unused[]>();

  return async (origin: string, options: BrowserContextOptions = {}): Promise<BrowserWindow> => {
    const kind = JSON.stringify([origin, options]);
    const stack = unused.get(kind) ?? [];
    unused.set(kind, stack);
    const { viewport = DESKTOP.viewport, ...others } = options;
    const window = stack.pop() ?? (await openWindow(browser, { viewport, ...others }, origin));
    const { page, context } = window;
    const { colorScheme = "light", reducedMotion = "reduce" } = options;
    await page.emulateMedia({ colorScheme, reducedMotion });
    if (viewport) await page.setViewportSize(viewport);
    const problems: string[] = [];
    page.on("pageerror", (error) => problems.push(`script: ${error.message}`));
    page.on("console", (message) => {
      if (message.type() === "error") problems.push(`console: ${message.text()}`);
    });
    return {
      page: watched(window),
      problems,
      async release() {
        if (window.isChanged || page.isClosed() || !(await empty(window, origin))) {
          return context.close();
        }
        stack.push(window);
      },
    };
  };
}

interface Unused {
  readonly context: BrowserContext;
  readonly page: Page;
  readonly devTools: CDPSession;
  isChanged: boolean;
}

async function openWindow(
  browser: Browser,
  options: BrowserContextOptions,
  origin: string,
): Promise<Unused> {
  const context = await browser.newContext({
    reducedMotion: "reduce",
    permissions: ["clipboard-read", "clipboard-write"],
    // Every window is new, so caching the build for the next start costs time and helps nobody.
    serviceWorkers: "block",
    ...options,
  });
  context.setDefaultTimeout(WAIT_TIMEOUT_MS);
  await context.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", (event) => {
      // biome-ignore lint/suspicious/noConsole: the test listens to the console
      console.error(`content security policy: ${event.violatedDirective} ${event.blockedURI}`);
    });
  });
  const page = await context.newPage();
  const devTools = await context.newCDPSession(page);
  await page.goto(origin + EMPTY_PAGE);
  return { context, page, devTools, isChanged: false };
}

/** The page for a test, of which every lasting use is noted. Playwright itself uses the page behind it. */
function watched(window: Unused): Page {
  return new Proxy(window.page, {
    get(page, name) {
      if (LASTING.has(name)) window.isChanged = true;
      const value: unknown = Reflect.get(page, name);
      return typeof value === "function" ? value.bind(page) : value;
    },
  });
}

/** Removes everything that the test has left in the window. Returns false if that fails. */
async function empty({ context, page, devTools }: Unused, origin: string): Promise<boolean> {
  try {
    page.removeAllListeners();
    await page.goto(origin + EMPTY_PAGE);
    // Where a test has left it, it would point at something of the next one.
    await page.mouse.move(0, 0);
    await context.clearCookies();
    await devTools.send("Storage.clearDataForOrigin", { origin, storageTypes: "all" });
    await page.evaluate(() => sessionStorage.clear());
    await devTools.send("Page.resetNavigationHistory");
    return true;
  } catch {
    // The page has crashed, or shows a dialog of the browser.
    return false;
  }
}
