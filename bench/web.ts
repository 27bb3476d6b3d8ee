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
  messages: number;
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
    await loadAll(page, messages);
    const parley = await typeInto(page);
    const bare = await browser.newPage();
    await bare.setContent("<textarea></textarea>");
    return { messages, parley, floor: await typeInto(bare) };
  } finally {
    await browser.close();
  }
}

/** Scrolls up until the very first message is there. */
async function loadAll(page: Page, messages: number): Promise<void> {
  const scroller = page.getByRole("feed").locator("..");
  await scroller.waitFor();
  const first = page.getByText("message 0 of the bench", { exact: false }).first();
  const deadline = Date.now() + 180_000;
  while (!(await first.isVisible())) {
    if (Date.now() > deadline) throw new Error(`${messages} messages were not loaded in time`);
    await scroller.evaluate("(box) => box.scrollTo({ top: 0 })");
    await scroller.evaluate("(box) => new Promise(requestAnimationFrame)");
  }
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
