import { agentOf, answerTo, type Person } from "@parley/testkit/client.ts";
import type { Page } from "playwright-core";
import {
  giveSandboxKey,
  type Harness,
  message,
  say,
  scroller,
  type Visit,
  type VisitOptions,
} from "./support.ts";

/** A conversation with every kind of content, and a person who sees it. */
export interface ShownChat {
  ada: Person;
  path: string;
}

export async function prepareChat({ person }: Harness): Promise<ShownChat> {
  const [ada, bob] = await Promise.all([person("ada"), person("bob")]);
  await giveSandboxKey(ada);
  const chat = await ada.call("startChat", {
    usernames: [bob.username, agentOf(ada)],
    title: "Room",
  });
  const chat_id = chat.id;
  const first = await say(bob, chat, "Some `code`, a [link](https://example.com) and **words**");
  await bob.call("setMessageReaction", { message_id: first.id, emoji: "👍" });
  const table = "| a | b |\n|---|---|\n| 1 | 2 |";
  await say(bob, chat, `\`\`\`ts\nconst answer = 42; // a comment\n\`\`\`\n\n${table}`);
  await using socket = await ada.connect();
  for (const word of ["buy", "form", "fail key"]) {
    const asked = await say(ada, chat, `@${agentOf(ada)} ${word}`);
    const { id } = await answerTo(socket, asked);
    if (word !== "buy") continue;
    await bob.call("sendComponentAction", { chat_id, message_id: id, action: "cancel:order" });
  }
  await ada.call("setChatTitle", { chat_id, title: "Room" });
  return { ada, path: `/c/${chat_id}` };
}

interface Screen {
  path: (shown: ShownChat) => string;
  signedOut?: boolean;
  /** The address answers 404, which the browser logs as an error. */
  isNotFound?: boolean;
  /** Waits until the screen is complete, after what it takes to open it. */
  ready: (page: Page, shown: ShownChat) => Promise<unknown>;
}

/** Opens a screen and waits until it is complete. */
export async function openScreen(
  harness: Harness,
  shown: ShownChat,
  screen: Screen,
  options: VisitOptions = {},
): Promise<Visit> {
  const who = screen.signedOut ? null : shown.ada;
  const visit = await harness.visit(who, { path: screen.path(shown), ...options });
  await screen.ready(visit.page, shown);
  return visit;
}

/** The main screens of the client by name. */
export const screens = {
  "sign up": {
    path: () => "/",
    signedOut: true,
    ready: (page) => page.getByRole("button", { name: "Create account" }).waitFor(),
  },
  "sign up with mistakes": {
    path: () => "/",
    signedOut: true,
    ready: async (page) => {
      await page.getByRole("button", { name: "Create account" }).click();
      await page.getByRole("alert").first().waitFor();
    },
  },
  "an unknown address": {
    path: () => "/settings/nowhere",
    isNotFound: true,
    ready: (page) => page.getByRole("heading", { name: "There is nothing here" }).waitFor(),
  },
  "an invalid key": {
    path: () => "/agents#key-gpt",
    ready: async (page, { ada }) => {
      const card = page.getByRole("region").filter({ hasText: agentOf(ada, "gpt") });
      await card.getByRole("button", { name: "Save" }).first().click();
      await card.getByRole("alert").waitFor();
    },
  },
  home: {
    path: () => "/",
    ready: (page) => page.getByText("Room").first().waitFor(),
  },
  conversation: {
    path: (shown) => shown.path,
    ready: async (page) => {
      await page.getByRole("button", { name: "Submit" }).waitFor();
      await message(page, "invalid")
        .or(page.getByRole("button", { name: "Set a key" }))
        .first()
        .waitFor();
    },
  },
  "earlier in the conversation": {
    path: (shown) => shown.path,
    ready: async (page) => {
      await page.getByRole("button", { name: "Submit" }).waitFor();
      await scroller(page).evaluate((box) => box.scrollTo(0, 0));
      await page.locator(".hl-keyword").first().waitFor();
    },
  },
  details: {
    path: (shown) => shown.path,
    ready: async (page) => {
      await page.getByRole("button", { name: "Members and agents" }).click();
      await page.getByText("When mentioned").first().waitFor();
    },
  },
  "emoji picker": {
    path: (shown) => shown.path,
    ready: async (page) => {
      const last = page.getByRole("article").last();
      await last.focus();
      await last.getByRole("button", { name: "React" }).click();
      await page.getByRole("button", { name: "rocket" }).first().waitFor();
    },
  },
  "an unknown conversation": {
    path: () => `/c/${Bun.randomUUIDv7()}`,
    ready: (page) => page.getByRole("button", { name: "Back to conversations" }).waitFor(),
  },
  switcher: {
    path: (shown) => shown.path,
    ready: async (page) => {
      await page.getByRole("feed").waitFor();
      await page.keyboard.press("Control+k");
      await page.getByRole("combobox", { name: /^Search/ }).fill("code");
      await page.getByRole("option", { name: /code/ }).first().waitFor();
    },
  },
  "who reacted": {
    path: (shown) => shown.path,
    ready: async (page) => {
      await page.getByRole("button", { name: "Submit" }).waitFor();
      await scroller(page).evaluate((box) => box.scrollTo(0, 0));
      const first = message(page, "Some code");
      await first.focus();
      await first.getByRole("button", { name: "More" }).click();
      await page.getByRole("menuitem", { name: "Who reacted" }).click();
      await page.getByRole("dialog").getByRole("listitem").waitFor();
    },
  },
  "confirmation of a deletion": {
    path: (shown) => shown.path,
    ready: async (page) => {
      const last = page.getByRole("article").last();
      await last.focus();
      await last.getByRole("button", { name: "More" }).click();
      await page.getByRole("menuitem", { name: "Delete for everyone" }).click();
      await page.getByRole("dialog", { name: "Delete for everyone?" }).waitFor();
    },
  },
  "new conversation": {
    path: (shown) => shown.path,
    ready: async (page) => {
      await page.getByRole("button", { name: "New conversation" }).click();
      await page.getByRole("dialog").getByRole("option").first().waitFor();
    },
  },
  agents: {
    path: () => "/agents",
    ready: async (page) => {
      await page.getByText("tokens in").first().waitFor();
    },
  },
  "new agent": {
    path: () => "/agents",
    ready: async (page) => {
      await page.getByRole("button", { name: "New agent" }).click();
      await page.getByRole("dialog").getByLabel("Handle").fill("9");
      await page.getByRole("button", { name: "Create agent" }).click();
      await page.getByRole("dialog").getByRole("alert").first().waitFor();
    },
  },
  settings: {
    path: () => "/settings/security",
    ready: (page) => page.getByText("This device", { exact: true }).waitFor(),
  },
} satisfies Record<string, Screen>;
