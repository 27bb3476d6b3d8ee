import { describe, expect } from "bun:test";
import { agentOf, type Person } from "@parley/testkit/client.ts";
import type { AxeResults, RunOptions } from "axe-core";
import type { Page } from "playwright-core";
import { giveSandboxKey, message, prepare, scroller, sharedHouse, test } from "./support.ts";

const AXE = await Bun.file(Bun.resolveSync("axe-core/axe.min.js", import.meta.dir)).text();

let ada: Person;
let path: string;

const house = sharedHouse(async ({ person }) => {
  const bob = await person("bob");
  ada = await person("ada");
  await giveSandboxKey(ada);
  const { id: chat_id } = await ada.call("startChat", {
    usernames: [bob.username, agentOf(ada)],
    title: "Room",
  });
  path = `/c/${chat_id}`;
  const say = (who: Person, content: string) => who.call("sendMessage", { chat_id, content });
  const first = await say(bob, "Some `code`, a [link](https://example.com) and **words**");
  await bob.call("setMessageReaction", { message_id: first.id, emoji: "👍" });
  await say(bob, "```ts\nconst answer = 42; // a comment\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |");
  for (const word of ["buy", "form", "fail key"]) {
    await say(ada, `@${agentOf(ada)} ${word}`);
    const message_id = await settled(chat_id);
    if (word !== "buy") continue;
    await prepare(bob, "sendComponentAction", { chat_id, message_id, action: "cancel:order" });
  }
  await prepare(ada, "setChatTitle", { chat_id, title: "Room" });
});

/** Waits until the agent has answered everything; returns the id of its last answer. */
async function settled(chat_id: string): Promise<string> {
  for (;;) {
    const { items } = await ada.call("getChatHistory", { chat_id, limit: 1 });
    if (items[0]?.turn && items[0].finalized_at) return items[0].id;
  }
}

interface Axe {
  run(options: RunOptions): Promise<AxeResults>;
}

async function violations(page: Page, colorScheme: "light" | "dark"): Promise<string[]> {
  await page.emulateMedia({ colorScheme });
  // Evaluated by the test, not by the page: its content security policy stays as it is.
  await page.evaluate(AXE);
  const { violations: found } = await page.evaluate((): Promise<AxeResults> => {
    const { axe } = globalThis as unknown as { axe: Axe };
    return axe.run({ resultTypes: ["violations"] });
  });
  return found.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 160)}`));
}

interface Screen {
  path: () => string;
  signedOut?: boolean;
  /** The browser itself tells of a page that is not there. */
  statusIsTold?: boolean;
  ready: (page: Page) => Promise<unknown>;
}

const screens: Record<string, Screen> = {
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
  "an address where nothing is": {
    path: () => "/settings/nowhere",
    statusIsTold: true,
    ready: (page) => page.getByRole("heading", { name: "There is nothing here" }).waitFor(),
  },
  "key that is none": {
    path: () => "/agents#key-gpt",
    ready: async (page) => {
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
    path: () => path,
    ready: async (page) => {
      await page.getByRole("button", { name: "Submit" }).waitFor();
      await message(page, "invalid")
        .or(page.getByRole("button", { name: "Set a key" }))
        .first()
        .waitFor();
    },
  },
  "earlier in the conversation": {
    path: () => path,
    ready: async (page) => {
      await page.getByRole("button", { name: "Submit" }).waitFor();
      await scroller(page).evaluate((box) => box.scrollTo(0, 0));
      await page.locator(".hl-keyword").first().waitFor();
    },
  },
  details: {
    path: () => path,
    ready: async (page) => {
      await page.getByRole("button", { name: "Members and agents" }).click();
      await page.getByText("When mentioned").first().waitFor();
    },
  },
  "emoji picker": {
    path: () => path,
    ready: async (page) => {
      const last = page.getByRole("article").last();
      await last.focus();
      await last.getByRole("button", { name: "React" }).click();
      await page.getByRole("button", { name: "rocket" }).first().waitFor();
    },
  },
  "a conversation that is not there": {
    path: () => `/c/${Bun.randomUUIDv7()}`,
    ready: (page) => page.getByRole("button", { name: "Back to conversations" }).waitFor(),
  },
  switcher: {
    path: () => path,
    ready: async (page) => {
      await page.getByRole("feed").waitFor();
      await page.keyboard.press("Control+k");
      await page.getByRole("combobox", { name: /^Search/ }).fill("code");
      await page.getByRole("option", { name: /code/ }).first().waitFor();
    },
  },
  "who reacted": {
    path: () => path,
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
  "before a message is deleted": {
    path: () => path,
    ready: async (page) => {
      const last = page.getByRole("article").last();
      await last.focus();
      await last.getByRole("button", { name: "More" }).click();
      await page.getByRole("menuitem", { name: "Delete for everyone" }).click();
      await page.getByRole("dialog", { name: "Delete for everyone?" }).waitFor();
    },
  },
  "new conversation": {
    path: () => path,
    ready: async (page) => {
      await page.getByRole("button", { name: "New conversation" }).click();
      await page.getByRole("dialog").getByRole("option").first().waitFor();
    },
  },
  agents: {
    path: () => "/agents",
    ready: async (page) => {
      await page.getByText("tokens in").first().waitFor();
      for (const summary of await page.locator("summary").all()) await summary.click();
    },
  },
  settings: {
    path: () => "/settings",
    ready: (page) => page.getByText("This device", { exact: true }).waitFor(),
  },
};

describe("axe finds nothing, in the light and in the dark", () => {
  for (const [name, screen] of Object.entries(screens)) {
    test(name, async () => {
      const who = screen.signedOut ? null : ada;
      await using visit = await house().visit(who, { path: screen.path() });
      const { page } = visit;
      await screen.ready(page);
      for (const colorScheme of ["light", "dark"] as const) {
        expect([colorScheme, ...(await violations(page, colorScheme))]).toEqual([colorScheme]);
      }
      const isExpected = (problem: string) => screen.statusIsTold && problem.includes("404");
      expect(visit.problems().filter((problem) => !isExpected(problem))).toEqual([]);
    });
  }
});

describe("on a phone of 360 pixels", () => {
  const phone = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true };
  const inView = ["sign up", "home", "conversation", "details", "agents", "settings"];
  for (const name of inView) {
    test(`${name} fits`, async () => {
      const screen = screens[name] as Screen;
      const who = screen.signedOut ? null : ada;
      await using visit = await house().visit(who, { path: screen.path(), ...phone });
      await screen.ready(visit.page);
      const wide = await visit.page.evaluate(() =>
        [...document.querySelectorAll<HTMLElement>("body *")]
          .filter((element) => element.getClientRects().length > 0)
          .filter((element) => !element.closest("pre, .sr-only, section[aria-label=Table]"))
          .filter((element) => element.getBoundingClientRect().right > innerWidth + 1)
          .map((element) => element.outerHTML.slice(0, 120)),
      );
      expect(wide).toEqual([]);
      expect(visit.problems()).toEqual([]);
    });
  }

  test("axe finds nothing in the sheet of a message", async () => {
    await using visit = await house().visit(ada, { path, ...phone });
    const { page } = visit;
    await screens.conversation?.ready(page);
    // As a screen reader reaches it, without a long press.
    const last = page.getByRole("article").last();
    await last.getByRole("button", { name: "Message actions" }).dispatchEvent("click");
    await page.getByRole("dialog", { name: "Message actions" }).waitFor();
    for (const colorScheme of ["light", "dark"] as const) {
      expect([colorScheme, ...(await violations(page, colorScheme))]).toEqual([colorScheme]);
    }
    expect(visit.problems()).toEqual([]);
  });

  test("axe finds nothing in the list of conversations, which is the main landmark", async () => {
    await using visit = await house().visit(ada, phone);
    const { page } = visit;
    await page.getByRole("main").getByRole("link", { name: /Room/ }).waitFor();
    for (const colorScheme of ["light", "dark"] as const) {
      expect([colorScheme, ...(await violations(page, colorScheme))]).toEqual([colorScheme]);
    }
    await page.getByRole("link", { name: /Room/ }).tap();
    await page.getByRole("main").getByRole("textbox", { name: "Message" }).waitFor();
    expect(visit.problems()).toEqual([]);
  });

  test("axe finds nothing in the sheet of a menu", async () => {
    await using visit = await house().visit(ada, phone);
    const { page } = visit;
    await page.getByRole("button", { name: "Menu", exact: true }).tap();
    await page.getByRole("menuitem").first().waitFor();
    for (const colorScheme of ["light", "dark"] as const) {
      expect([colorScheme, ...(await violations(page, colorScheme))]).toEqual([colorScheme]);
    }
    expect(visit.problems()).toEqual([]);
  });

  test("one goes from the list into a conversation and back", async () => {
    await using visit = await house().visit(ada, phone);
    const { page } = visit;
    await page.getByRole("link", { name: /Room/ }).tap();
    await page.getByRole("textbox", { name: "Message" }).waitFor();
    await page.getByRole("button", { name: "Back to conversations" }).tap();
    await page.getByRole("link", { name: /Room/ }).waitFor();
    expect(visit.problems()).toEqual([]);
  });

  test("Enter breaks the line, the button sends, and less room does not hide the latest message", async () => {
    const carol = await house().person("carol");
    const { id } = await carol.call("startChat", { usernames: [ada.username], title: "Small" });
    for (let number = 1; number <= 12; number++) {
      await carol.call("sendMessage", { chat_id: id, content: `Number ${number}` });
    }
    await using visit = await house().visit(carol, { path: `/c/${id}`, ...phone });
    const { page } = visit;
    const last = message(page, "Number 12");
    await last.waitFor();
    const field = page.getByRole("textbox", { name: "Message" });
    await field.tap();
    await page.setViewportSize({ width: 360, height: 400 });
    await page.waitForFunction(() => innerHeight === 400);
    for (const line of ["One", "Two", "Three"]) {
      await page.keyboard.type(line);
      await page.keyboard.press("Enter");
    }
    expect(await field.inputValue()).toBe("One\nTwo\nThree\n");
    await page.waitForFunction(() => {
      const end = [...document.querySelectorAll("article")].at(-1)?.getBoundingClientRect().bottom;
      return (end ?? 0) <= (document.querySelector("form")?.getBoundingClientRect().top ?? 0);
    });
    await page.getByRole("button", { name: "Send" }).tap();
    await message(page, "Three").waitFor();
    expect(await field.evaluate((element) => element === document.activeElement)).toBe(true);
    expect(visit.problems()).toEqual([]);
  });
});

describe("at the widths where the page changes", () => {
  test("from 768 pixels on the list stands beside the conversation", async () => {
    for (const [width, isBeside] of [
      [767, false],
      [768, true],
    ] as const) {
      await using visit = await house().visit(ada, { path, viewport: { width, height: 900 } });
      const { page } = visit;
      await page.getByRole("textbox", { name: "Message" }).waitFor();
      const back = page.getByRole("button", { name: "Back to conversations" });
      expect(await page.getByRole("link", { name: /Room/ }).isVisible()).toBe(isBeside);
      expect(await back.isVisible()).toBe(!isBeside);
    }
  });

  test("from 1024 pixels on the details stand beside it too", async () => {
    for (const [width, isBeside] of [
      [1023, false],
      [1024, true],
    ] as const) {
      await using visit = await house().visit(ada, { path, viewport: { width, height: 900 } });
      const { page } = visit;
      await page.getByRole("button", { name: "Members and agents" }).click();
      const details = await page.getByRole("complementary", { name: "Details" }).boundingBox();
      const conversation = await page.getByRole("main").boundingBox();
      const end = (conversation?.x ?? 0) + (conversation?.width ?? 0);
      expect(end <= (details?.x ?? 0)).toBe(isBeside);
    }
  });
});
