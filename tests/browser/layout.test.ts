import { describe, expect } from "bun:test";
import { openScreen, prepareChat, type ShownChat, screens } from "./screens.ts";
import { composer, hasFocus, message, PHONE, say, sharedHarness, test } from "./support.ts";

let shown: ShownChat;
const harness = sharedHarness(async (started) => {
  shown = await prepareChat(started);
});

for (const [label, path] of [
  ["Topic", null],
  ["Model", "/agents#model-claude"],
] as const) {
  test(`the field «${label}» shows an arrow, and its text does not reach below it`, async () => {
    await using visit = await harness().visit(shown.ada, { path: path ?? shown.path });
    const style = await visit.page.getByLabel(label, { exact: true }).evaluate((field) => {
      const { backgroundImage, backgroundRepeat, paddingRight } = getComputedStyle(field);
      return { isDrawn: backgroundImage.includes("svg"), backgroundRepeat, paddingRight };
    });
    expect(style).toEqual({ isDrawn: true, backgroundRepeat: "no-repeat", paddingRight: "36px" });
  });
}

describe("on a phone 360 pixels wide", () => {
  const names = ["sign up", "home", "conversation", "details", "agents", "settings"] as const;
  for (const name of names) {
    test(`the screen «${name}» has no overflow`, async () => {
      await using visit = await openScreen(harness(), shown, screens[name], PHONE);
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

  test("a tap opens a conversation from the list, and «back» returns to the list", async () => {
    await using visit = await harness().visit(shown.ada, PHONE);
    const { page } = visit;
    await page.getByRole("link", { name: /Room/ }).tap();
    await composer(page).waitFor();
    await page.getByRole("button", { name: "Back to conversations" }).tap();
    await page.getByRole("link", { name: /Room/ }).waitFor();
    expect(visit.problems()).toEqual([]);
  });

  test("Enter breaks the line, the button sends, and a smaller viewport keeps the latest message in view", async () => {
    const carol = await harness().person("carol");
    const chat = await carol.call("startChat", { usernames: [shown.ada.username], title: "Small" });
    for (let number = 1; number <= 12; number++) await say(carol, chat, `Number ${number}`);
    await using visit = await harness().visit(carol, { path: `/c/${chat.id}`, ...PHONE });
    const { page } = visit;
    const last = message(page, "Number 12");
    await last.waitFor();
    const field = composer(page);
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
    expect(await hasFocus(field)).toBe(true);
    expect(visit.problems()).toEqual([]);
  });
});

describe("at the breakpoints", () => {
  test("the list stands beside the conversation from 768 pixels", async () => {
    for (const [width, isBeside] of [
      [767, false],
      [768, true],
    ] as const) {
      await using visit = await harness().visit(shown.ada, {
        path: shown.path,
        viewport: { width, height: 900 },
      });
      const { page } = visit;
      await composer(page).waitFor();
      const back = page.getByRole("button", { name: "Back to conversations" });
      expect(await page.getByRole("link", { name: /Room/ }).isVisible()).toBe(isBeside);
      expect(await back.isVisible()).toBe(!isBeside);
    }
  });

  test("the details stand beside the conversation from 1024 pixels", async () => {
    for (const [width, isBeside] of [
      [1023, false],
      [1024, true],
    ] as const) {
      await using visit = await harness().visit(shown.ada, {
        path: shown.path,
        viewport: { width, height: 900 },
      });
      const { page } = visit;
      await page.getByRole("button", { name: "Members and agents" }).click();
      const details = await page.getByRole("complementary", { name: "Details" }).boundingBox();
      const conversation = await page.getByRole("main").boundingBox();
      const end = (conversation?.x ?? 0) + (conversation?.width ?? 0);
      expect(end <= (details?.x ?? 0)).toBe(isBeside);
    }
  });
});
