import { type Browser, chromium, type Page } from "playwright-core";
import { LIMITS, MAIN, temporaryFolder, WINDOWS } from "./environment.ts";
import { startPinned } from "./process.ts";
import type { Measurement } from "./report.ts";
import { seed } from "./seed.ts";

const CHROMIUM = "/usr/bin/chromium";

/**
 * Time from pasting a screenshot of 1440 × 900 pixels until the composer shows it, and until a bare
 * page shows it that does nothing else.
 */
export async function paste(): Promise<Measurement[]> {
  using folder = temporaryFolder();
  const made = await seed(folder.path, { people: 2, groups: [[0, 1]], messages: 50 });
  await using server = await startPinned(MAIN, {
    PARLEY_DATA: folder.path,
    PARLEY_LIMITS: LIMITS,
  });
  const browser = await chromium.launch({
    executablePath: CHROMIUM,
    args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"],
  });
  try {
    const bare = await openBare(browser);
    const address = `${server.url}/c/${made.conversations[0]}`;
    const page = await openConversation(browser, address, made.tokens[0] ?? "");
    const [parley, floor]: [number[], number[]] = [[], []];
    // The first window is a warm-up.
    for (let window = 0; window <= WINDOWS; window++) {
      const [without, ours] = [await pasteInto(bare), await pasteInto(page)];
      if (window === 0) continue;
      floor.push(without);
      parley.push(ours);
    }
    const scenario = "a screenshot is pasted";
    return [
      { scenario, metric: "shown, and by a bare page", unit: "ms", parley, floor },
      { scenario, metric: "shown", unit: "ms", parley, goal: 100 },
    ];
  } finally {
    await browser.close();
  }
}

async function openBare(browser: Browser): Promise<Page> {
  const page = await browser.newPage();
  await page.setContent("<textarea></textarea>");
  await page.evaluate(`document.addEventListener("paste", ({ clipboardData }) => {
    const image = document.createElement("img");
    image.src = URL.createObjectURL(clipboardData.files[0]);
    document.body.append(image);
  })`);
  await page.locator("textarea").focus();
  return page;
}

async function openConversation(browser: Browser, address: string, token: string): Promise<Page> {
  const page = await browser.newPage();
  await page.addInitScript(`localStorage.setItem("parley.token", ${JSON.stringify(token)})`);
  await page.goto(address);
  await page.getByRole("article").first().waitFor();
  await page.getByRole("textbox", { name: /message/i }).focus();
  return page;
}

/** Runs in the page: pastes a picture, and waits until an element shows it. */
const PASTE = `async () => {
  const canvas = new OffscreenCanvas(1440, 900);
  const context = canvas.getContext("2d");
  for (let y = 0; y < 900; y += 10) {
    context.fillStyle = "hsl(" + Math.random() * 360 + " 60% 60%)";
    context.fillRect(0, y, 1440, 10);
  }
  const clipboardData = new DataTransfer();
  clipboardData.items.add(new File([await canvas.convertToBlob()], "image.png", { type: "image/png" }));
  const shown = new Promise((resolve) => {
    document.addEventListener("load", ({ target }) => target instanceof HTMLImageElement && resolve(),
      { capture: true, once: true });
  });
  const began = performance.now();
  document.activeElement.dispatchEvent(
    new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
  await shown;
  return performance.now() - began;
}`;

const pasteInto = (page: Page) => page.evaluate<number>(`(${PASTE})()`);
