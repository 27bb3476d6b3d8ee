#!/usr/bin/env bun
/**
 * Takes the screenshots of docs/screenshots, with a test server, a scripted provider instead of
 * real models, and a browser. The published ones need the Debian packages `fonts-inter` and
 * `fonts-noto-color-emoji`.
 *
 *     bun scripts/screenshots.ts [folder]
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Message } from "@parley/protocol";
import { checkedResult, Person, post } from "@parley/testkit/client.ts";
import { noRates, startServer } from "@parley/testkit/server.ts";
import { type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { startProvider } from "./screenshots/provider.ts";

const OUT = process.argv[2] ?? join(import.meta.dir, "../docs/screenshots");
const DESKTOP = { viewport: { width: 1440, height: 900 } };
const PHONE = {
  viewport: { width: 390, height: 844 },
  deviceScaleFactor: 2,
  hasTouch: true,
  isMobile: true,
};

const provider = startProvider();
const protocol = { protocol: "anthropic", base_url: provider.url };
await using server = await startServer({
  ...noRates,
  PARLEY_PROVIDERS: JSON.stringify({
    claude: { ...protocol, display_name: "Claude", model: "claude-sonnet-4-5" },
    gpt: { ...protocol, display_name: "GPT", model: "gpt-5" },
  }),
});

const say = (who: Person, chat: { id: string }, content: string, reply?: Message) =>
  who.call("sendMessage", {
    chat_id: chat.id,
    content,
    ...(reply && { reply_to_id: reply.id }),
  });

async function person(username: string, display_name: string): Promise<Person> {
  const password = crypto.randomUUID();
  const { body } = await post(server.url, "signUp", { username, display_name, password });
  if (!body.ok) throw new Error(body.description);
  const { access_token, account } = checkedResult("signUp", body.result);
  const made = new Person(server.url, access_token, account);
  for (const each of ["claude", "gpt"]) {
    await made.call("setAgentKey", { provider: each, api_key: "sk-ant-api03-screenshots-4242" });
    await made.call("setAgentLimits", { provider: each, spenders: "participants" });
  }
  return made;
}

/** Waits until `count` answers are complete; returns the latest. */
async function answered(who: Person, chat: { id: string }, count: number): Promise<Message> {
  for (;;) {
    const { items } = await who.call("getChatHistory", { chat_id: chat.id });
    const done = items.filter(({ turn, finalized_at }) => turn && finalized_at);
    const latest = done.at(-1);
    if (latest && done.length >= count) return latest;
    await Bun.sleep(50);
  }
}

const ada = await person("ada", "Ada Lovelace");
const grace = await person("grace", "Grace Hopper");
const alan = await person("alan", "Alan Turing");
const katherine = await person("katherine", "Katherine Johnson");

const billing = await ada.call("startChat", {
  usernames: ["grace", "alan", "ada:claude"],
  title: "Billing",
});
await grace.call("addGroupAgent", { chat_id: billing.id, agent_username: "grace:claude" });
await say(alan, billing, "Two customers were charged twice this morning. Is that ours?");
await say(alan, billing, "The same event was delivered two times, at 14:02 and 14:07.");
await say(ada, billing, "@ada:claude why does the webhook lose or repeat events?");
const analysis = await answered(ada, billing, 1);
for (const [who, emoji] of [
  [ada, "🔥"],
  [grace, "🔥"],
  [alan, "👀"],
] as const) {
  await who.call("addReaction", { message_id: analysis.id, emoji });
}
await say(grace, billing, "That is it. I have the same change on a branch, with a test.", analysis);
await ada.call("addChatMembers", { chat_id: billing.id, usernames: ["katherine"] });
await say(katherine, billing, "Reviewed, looks right to me 👍");
await say(ada, billing, "@grace:claude can we deploy this today?");
const release = await answered(ada, billing, 2);
const { seq } = await ada.call("getChat", { chat_id: billing.id });
for (const who of [ada, grace, alan]) await who.call("readChat", { chat_id: billing.id, seq });

const lunch = await katherine.call("startChat", { usernames: ["ada"] });
await say(katherine, lunch, "And lunch at 12:30?");
const reading = await grace.call("startChat", {
  usernames: ["ada", "katherine"],
  title: "Reading group",
});
await say(grace, reading, "Chapter 4 on Thursday, @ada?");
const ledger = await ada.call("startChat", { usernames: ["ada:gpt"] });
await say(ada, ledger, "Sum up the billing bug in one line.");
await answered(ada, ledger, 1);

const fonts = mkdtempSync(join(tmpdir(), "parley-fonts-"));
await Bun.write(join(fonts, "fonts.conf"), fontsConf("Inter"));
const browser = await chromium.launch({
  executablePath: "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu"],
  env: { ...process.env, FONTCONFIG_FILE: join(fonts, "fonts.conf") } as Record<string, string>,
});

async function takeScreenshot(
  name: string,
  path: string,
  options: BrowserContextOptions,
  prepare: (page: Page) => Promise<unknown>,
): Promise<void> {
  const context = await browser.newContext({ reducedMotion: "reduce", ...options });
  await context.addInitScript((token) => localStorage.setItem("parley.token", token), ada.token);
  const page = await context.newPage();
  await page.goto(server.url + path);
  await prepare(page);
  await page.mouse.move(0, 0);
  // Time for the highlighter to load, and for the floating day to disappear.
  await page.waitForTimeout(2000);
  await page.screenshot({ path: join(OUT, `${name}.png`) });
  await context.close();
}

const path = `/c/${billing.id}`;
await takeScreenshot("group", path, DESKTOP, async (page) => {
  await page.getByText("Release 2.14.0").first().waitFor();
  await page.getByRole("button", { name: "Members and agents" }).click();
});
await takeScreenshot(
  "conversation-dark",
  path,
  { ...DESKTOP, colorScheme: "dark" },
  async (page) => {
    await page.getByText("Release 2.14.0").first().waitFor();
    await page.getByRole("article").last().hover();
    await page.mouse.wheel(0, -380);
  },
);
await grace.call("sendComponentAction", {
  chat_id: billing.id,
  message_id: release.id,
  action: "release:canary",
});
await takeScreenshot("phone", path, PHONE, (page) => page.getByText("pressed").first().waitFor());
await takeScreenshot("agents", "/agents", DESKTOP, (page) =>
  page.getByText("tokens in").first().waitFor(),
);

await browser.close();
provider.stop();
rmSync(fonts, { recursive: true });

/** Replaces all fonts of the system with one family. */
function fontsConf(family: string): string {
  const prefer = (name: string) =>
    `<match target="pattern"><test qual="any" name="family"><string>${name}</string></test>` +
    `<edit name="family" mode="prepend" binding="strong"><string>${family}</string></edit></match>`;
  return `<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig>
<include>/etc/fonts/fonts.conf</include>
${["system-ui", "sans-serif", "DejaVu Sans"].map(prefer).join("\n")}
</fontconfig>`;
}
