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
  "exposeFunction",
  "routeWebSocket",
]);
/** What tests use of the context of a page, and `empty` undoes. Whatever else they use is lasting. */
const UNDONE = new Set<string | symbol>([
  "newCDPSession",
  "newPage",
  "on",
  "route",
  "setOffline",
  "waitForEvent",
]);
/**
 * A small page of the client's origin. The client's next load needs no new process, not even from another
 * port: all of this machine is one site.
 */
const EMPTY_PAGE = "/health";
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
 * Windows for the tests of a file. A new window costs half as much CPU time again as one that has
 * loaded the client before, so windows are emptied and used again, unless a test may have changed one
 * for good or has options of its own.
 */
export function openWindows(browser: Browser) {
  const unused = new Map<string, Unused[]>();

  return async (origin: string, options: BrowserContextOptions = {}): Promise<BrowserWindow> => {
    // These can be set in any window.
    const { viewport = DESKTOP.viewport, colorScheme, reducedMotion, ...others } = options;
    const kind = JSON.stringify(others);
    const stack = unused.get(kind) ?? [];
    unused.set(kind, stack);
    const size = { viewport: viewport ?? DESKTOP.viewport };
    const window = stack.pop() ?? (await openWindow(browser, { ...size, ...others }));
    const { page, context } = window;
    await page.emulateMedia({
      colorScheme: colorScheme ?? "light",
      reducedMotion: reducedMotion ?? "reduce",
    });
    await page.setViewportSize(size.viewport);
    if (!page.url().startsWith(`${origin}/`)) await openEmptyPage(page, origin);
    const origins = new Set([origin]);
    page.on("framenavigated", (frame) => origins.add(new URL(frame.url()).origin));
    const problems: string[] = [];
    page.on("pageerror", (error) => problems.push(`script: ${error.message}`));
    page.on("console", (message) => {
      if (message.type() === "error") problems.push(`console: ${message.text()}`);
    });
    return {
      page: watched(window),
      problems,
      async release() {
        if (window.isChanged || page.isClosed() || !(await empty(window, origin, origins))) {
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
  /** Undoes what the test has done to the context. */
  readonly undo: (() => unknown)[];
}

async function openWindow(browser: Browser, options: BrowserContextOptions): Promise<Unused> {
  const context = await browser.newContext({
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
  return { context, page, devTools, isChanged: false, undo: [] };
}

/** The page for a test, of which every lasting use is noted. Playwright itself uses the page behind it. */
function watched(window: Unused): Page {
  return new Proxy(window.page, {
    get(page, name) {
      if (LASTING.has(name)) window.isChanged = true;
      if (name === "context") return () => watchedContext(window);
      return member(page, name);
    },
  });
}

function watchedContext(window: Unused): BrowserContext {
  const { context, undo } = window;
  const undone = {
    on: (...[event, listener]: Parameters<BrowserContext["on"]>) => {
      undo.push(() => context.off(event, listener));
      return context.on(event, listener);
    },
    newCDPSession: async (page: Page) => {
      const session = await context.newCDPSession(page);
      // The session of a closed page has ended.
      undo.push(() => session.detach().catch(() => null));
      return session;
    },
    route: (...values: Parameters<BrowserContext["route"]>) => {
      undo.push(() => context.unrouteAll({ behavior: "ignoreErrors" }));
      return context.route(...values);
    },
    setOffline: (isOffline: boolean) => {
      undo.push(() => context.setOffline(false));
      return context.setOffline(isOffline);
    },
  };
  return new Proxy(context, {
    get(_, name) {
      if (!UNDONE.has(name)) window.isChanged = true;
      return member(name in undone ? undone : context, name);
    },
  });
}

function member(owner: object, name: string | symbol): unknown {
  const value: unknown = Reflect.get(owner, name);
  return typeof value === "function" ? value.bind(owner) : value;
}

/** Removes everything that the test has left in the window. Returns false if that fails. */
async function empty(
  { context, page, devTools, undo }: Unused,
  origin: string,
  visited: ReadonlySet<string>,
): Promise<boolean> {
  try {
    for (const each of undo.splice(0)) await each();
    for (const other of context.pages()) if (other !== page) await other.close();
    page.removeAllListeners();
    await page.unrouteAll({ behavior: "ignoreErrors" });
    await openEmptyPage(page, origin);
    // Where a test has left it, it would point at something of the next one.
    await page.mouse.move(0, 0);
    await context.clearCookies();
    for (const each of visited) {
      if (!each.startsWith("http")) continue;
      await devTools.send("Storage.clearDataForOrigin", { origin: each, storageTypes: "all" });
    }
    await devTools.send("Page.resetNavigationHistory");
    return true;
  } catch {
    // The page has crashed, or shows a dialog of the browser.
    return false;
  }
}

async function openEmptyPage(page: Page, origin: string): Promise<void> {
  await page.goto(origin + EMPTY_PAGE);
  await page.evaluate(() => sessionStorage.clear());
}
