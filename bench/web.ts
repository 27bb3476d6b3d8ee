import { type Browser, chromium, type Page } from "playwright-core";

const CHROMIUM = "/usr/bin/chromium";
const KEYS = 200;
const LOADING_MS = 60_000;
/** How often another person writes during the measurements with incoming messages. */
const MESSAGES_A_SECOND = 10;

/** Times of each keystroke, in milliseconds. */
interface KeyTimes {
  /** From the key to the paint of its effect. */
  paint: number[];
  /** In the page's script: handlers, React, and the layout that they force. */
  script: number[];
  /** In the browser: style, layout and paint. */
  render: number[];
}

interface TypingResult {
  /** How many messages were loaded, and how long that took. */
  loaded: number;
  seconds: number;
  /** On a page with only a text field. */
  bare: KeyTimes;
  /** With one page of messages loaded, without and with incoming messages. */
  few: KeyTimes;
  fewBusy: KeyTimes;
  /** The first keys after a jump from the first message to the latest. */
  jumped: KeyTimes;
  /** With all messages loaded, without and with incoming messages. */
  all: KeyTimes;
  allBusy: KeyTimes;
}

interface TypingInput {
  url: string;
  conversation: string;
  /** The tokens of the person who types and of the one who writes to them. */
  token: string;
  other: string;
  messages: number;
}

/** Measures how soon keystrokes are painted in a conversation with all messages loaded; returns a table. */
export async function measureTyping(input: TypingInput): Promise<string[]> {
  const { loaded, seconds, bare, few, fewBusy, jumped, all, allBusy } = await measureAll(input);
  const none = null;
  return [
    `typing with ${loaded} of ${input.messages} messages loaded (in ${seconds.toFixed(0)} s), with one page loaded, and in a bare text field; a frame takes 16.7 ms`,
    "                                     all     page     bare  all/page  all/bare",
    line("key to paint p50 ms", "paint", 0.5, all, few, bare),
    line("key to paint p99 ms", "paint", 0.99, all, few, bare),
    line("our script p50 ms", "script", 0.5, all, few, none),
    line("our script p99 ms", "script", 0.99, all, few, none),
    line("rendering p50 ms", "render", 0.5, all, few, bare),
    line("rendering p99 ms", "render", 0.99, all, few, bare),
    line("after a jump: paint, worst ms", "paint", 1, jumped, none, bare),
    line("after a jump: our script, worst", "script", 1, jumped, none, none),
    `  while ${MESSAGES_A_SECOND} messages a second arrive:`,
    line("  key to paint p50 ms", "paint", 0.5, allBusy, fewBusy, bare),
    line("  key to paint p99 ms", "paint", 0.99, allBusy, fewBusy, bare),
    line("  our script p99 ms", "script", 0.99, allBusy, fewBusy, none),
  ];
}

function line(
  name: string,
  what: keyof KeyTimes,
  share: number,
  all: KeyTimes,
  few: KeyTimes | null,
  bare: KeyTimes | null,
): string {
  const at = (typed: KeyTimes | null) => {
    const sorted = typed?.[what].toSorted((one, other) => one - other) ?? [];
    return sorted[Math.floor((sorted.length - 1) * share)] ?? Number.NaN;
  };
  const shown = (value: number, width: number, digits = 1) =>
    (Number.isNaN(value) ? "" : value.toFixed(digits)).padStart(width);
  const [ours, page, field] = [at(all), at(few), at(bare)];
  return `  ${name.padEnd(31)} ${shown(ours, 6)}   ${shown(page, 6)}   ${shown(field, 6)}    ${shown(ours / page, 6, 2)}    ${shown(ours / field, 6, 2)}`.trimEnd();
}

async function measureAll(input: TypingInput): Promise<TypingResult> {
  const browser = await chromium.launch({
    executablePath: CHROMIUM,
    args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"],
  });
  try {
    const bare = await typeInBareField(browser);
    const page = await open(browser, input);
    const few = await typeInto(page, KEYS);
    const fewBusy = await withIncomingMessages(input, () => typeInto(page, KEYS));
    const began = performance.now();
    const loaded = await loadAll(page, input.messages);
    const seconds = (performance.now() - began) / 1000;
    await page.getByRole("button", { name: /Jump to latest|new message/ }).click();
    const jumped = await typeInto(page, KEYS / 10);
    const all = await typeInto(page, KEYS);
    const allBusy = await withIncomingMessages(input, () => typeInto(page, KEYS));
    return { loaded, seconds, bare, few, fewBusy, jumped, all, allBusy };
  } finally {
    await browser.close();
  }
}

const VIEWPORT = { width: 1440, height: 900 };

async function typeInBareField(browser: Browser): Promise<KeyTimes> {
  const page = await browser.newPage({ viewport: VIEWPORT });
  await page.setContent("<textarea></textarea>");
  const typed = await typeInto(page, KEYS);
  await page.close();
  return typed;
}

async function open(browser: Browser, { url, conversation, token }: TypingInput): Promise<Page> {
  const page = await browser.newPage({ viewport: VIEWPORT });
  await page.addInitScript(`localStorage.setItem("parley.token", ${JSON.stringify(token)})`);
  await page.goto(`${url}/c/${conversation}`);
  await page.getByRole("article").first().waitFor();
  return page;
}

/** Runs in the page: stays at the top while earlier pages load, until the first message is loaded. */
const SCROLL_UP = `async (deadline) => {
  const box = document.querySelector("[role=feed]").parentElement.parentElement;
  const oldest = () => Number(/message (\\d+) of the bench/.exec(
    document.querySelector("article")?.textContent ?? "")?.[1] ?? Infinity);
  const end = performance.now() + deadline;
  while (oldest() > 0 && performance.now() < end) {
    box.scrollTop = 0;
    await new Promise(requestAnimationFrame);
  }
  return oldest();
}`;

async function loadAll(page: Page, messages: number): Promise<number> {
  const oldest = await page.evaluate<number>(`(${SCROLL_UP})(${LOADING_MS})`);
  return messages - Math.min(oldest, messages);
}

/** Runs the work while another person writes. */
async function withIncomingMessages<Result>(
  { url, conversation, other }: TypingInput,
  work: () => Promise<Result>,
): Promise<Result> {
  const write = () =>
    fetch(`${url}/api/sendMessage`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${other}` },
      body: JSON.stringify({ chat_id: conversation, content: "Something is always being said." }),
    });
  const timer = setInterval(write, 1000 / MESSAGES_A_SECOND);
  try {
    return await work();
  } finally {
    clearInterval(timer);
  }
}

/**
 * Runs in the page: records the times of each key. The handlers of an event, React's commit included,
 * are done when the event has bubbled up to the window. A frame is painted when a message posted from
 * its callback arrives.
 */
const WATCH_KEYS = `(() => {
  const typed = (window.typed = { paint: [], script: [], render: [] });
  let pressed = 0, script = 0, entered = 0;
  const enter = () => { entered = performance.now(); };
  const leave = () => { script += performance.now() - entered; };
  const painted = (frame) => {
    const now = performance.now();
    typed.paint.push(now - pressed);
    typed.render.push(now - frame);
    typed.script.push(script);
    window.dispatchEvent(new Event("painted"));
  };
  const press = () => {
    pressed = performance.now();
    script = 0;
    requestAnimationFrame(() => {
      const frame = performance.now();
      const channel = new MessageChannel();
      channel.port1.onmessage = () => painted(frame);
      channel.port2.postMessage(null);
    });
  };
  const watch = (type, listener, capture) => {
    addEventListener(type, listener, { capture });
    window.unwatch.push(() => removeEventListener(type, listener, { capture }));
  };
  for (const stop of window.unwatch ?? []) stop();
  window.unwatch = [];
  watch("keydown", press, true);
  for (const type of ["keydown", "keypress", "beforeinput", "input", "selectionchange", "keyup"]) {
    watch(type, enter, true);
    watch(type, leave, false);
  }
})()`;

async function typeInto(page: Page, keys: number): Promise<KeyTimes> {
  await page.locator("textarea").first().focus();
  await page.evaluate(WATCH_KEYS);
  for (let key = 0; key < keys; key++) {
    await page.keyboard.press(key % 6 === 5 ? " " : "a");
    await page.evaluate(`typed.paint.length > ${key} || new Promise((done) =>
      addEventListener("painted", done, { once: true }))`);
  }
  return page.evaluate<KeyTimes>("typed");
}
