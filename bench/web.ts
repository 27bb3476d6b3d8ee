import { chromium, type Page } from "playwright-core";

const CHROMIUM = "/usr/bin/chromium";
const KEYS = 200;

export interface Typed {
  /** From the key to what it changed on the screen, in milliseconds. */
  p50: number;
  p99: number;
  /** The longest a key kept the page busy. */
  worst_work: number;
}

export interface TypingResult {
  /** Messages that were loaded, of all there are. */
  loaded: number;
  parley: Typed;
  /** A page with nothing on it but a text field. */
  floor: Typed;
}

/** How soon a keystroke is painted in a conversation with all of its messages loaded. */
export async function typing(
  url: string,
  token: string,
  conversation: string,
  messages: number,
): Promise<TypingResult> {
  const browser = await chromium.launch({
    executablePath: CHROMIUM,
    args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"],
  });
  try {
    const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
    await page.addInitScript(`localStorage.setItem("parley.token", ${JSON.stringify(token)})`);
    await page.goto(`${url}/c/${conversation}`);
    const loaded = await loadAll(page, messages);
    const parley = await typeInto(page);
    const bare = await browser.newPage();
    await bare.setContent("<textarea></textarea>");
    return { loaded, parley, floor: await typeInto(bare) };
  } finally {
    await browser.close();
  }
}

const LOADING_MS = 60_000;

/** Scrolls up to the very first message, or as far as a minute goes; tells how many are loaded. */
async function loadAll(page: Page, messages: number): Promise<number> {
  const scroller = page.getByRole("feed").locator("..");
  await scroller.waitFor();
  const deadline = Date.now() + LOADING_MS;
  let oldest = messages;
  while (oldest > 0 && Date.now() < deadline) {
    await scroller.evaluate("(box) => box.scrollTo({ top: 0 })");
    await page.waitForTimeout(30);
    const text = (await page.getByRole("article").first().textContent()) ?? "";
    oldest = Number(/message (\d+) of the bench/.exec(text)?.[1] ?? oldest);
  }
  return messages - oldest;
}

/** Runs in the page: notes for each key when what it changed was painted, and how long it took. */
const WATCH_KEYS = `(() => {
  const typed = (window.typed = { painted: [], work: [] });
  addEventListener("keydown", () => {
    const began = performance.now();
    const since = () => performance.now() - began;
    requestAnimationFrame(() => {
      const channel = new MessageChannel();
      channel.port1.onmessage = () => typed.painted.push(since());
      channel.port2.postMessage(null);
    });
    setTimeout(() => typed.work.push(since()), 0);
  }, { capture: true });
})()`;

async function typeInto(page: Page): Promise<Typed> {
  await page.locator("textarea").first().click();
  await page.evaluate(WATCH_KEYS);
  for (let key = 0; key < KEYS; key++) await page.keyboard.press(key % 6 === 5 ? " " : "a");
  const { painted, work } = await page.evaluate<{ painted: number[]; work: number[] }>("typed");
  const sorted = painted.sort((one, other) => one - other);
  const at = (share: number) => sorted[Math.floor((sorted.length - 1) * share)] ?? 0;
  return { p50: at(0.5), p99: at(0.99), worst_work: Math.max(...work) };
}
