import { describe, expect } from "bun:test";
import { expectNoViolations } from "./axe.ts";
import { openScreen, prepareChat, type ShownChat, screens } from "./screens.ts";
import { PHONE, sharedHarness, test } from "./support.ts";

let shown: ShownChat;
const harness = sharedHarness(async (started) => {
  shown = await prepareChat(started);
});

describe("axe finds no violations in either theme", () => {
  for (const [name, screen] of Object.entries(screens)) {
    test(`on the screen «${name}»`, async () => {
      await using visit = await openScreen(harness(), shown, screen);
      await expectNoViolations(visit.page);
      const isExpected = (problem: string) => "isNotFound" in screen && problem.includes("404");
      expect(visit.problems().filter((problem) => !isExpected(problem))).toEqual([]);
    });
  }
});

describe("on a phone", () => {
  test("axe finds no violations in the actions sheet of a message", async () => {
    await using visit = await openScreen(harness(), shown, screens.conversation, PHONE);
    const { page } = visit;
    // A screen reader uses this button in place of a long press.
    const last = page.getByRole("article").last();
    await last.getByRole("button", { name: "Message actions" }).dispatchEvent("click");
    await page.getByRole("dialog", { name: "Message actions" }).waitFor();
    await expectNoViolations(page);
    expect(visit.problems()).toEqual([]);
  });

  test("axe finds no violations in the conversation list, which is the main landmark", async () => {
    await using visit = await harness().visit(shown.ada, PHONE);
    const { page } = visit;
    await page.getByRole("main").getByRole("link", { name: /Room/ }).waitFor();
    await expectNoViolations(page);
    await page.getByRole("link", { name: /Room/ }).tap();
    await page.getByRole("main").getByRole("textbox", { name: "Message" }).waitFor();
    expect(visit.problems()).toEqual([]);
  });

  test("axe finds no violations in the sheet of a menu", async () => {
    await using visit = await harness().visit(shown.ada, PHONE);
    const { page } = visit;
    await page.getByRole("button", { name: "Menu", exact: true }).tap();
    await page.getByRole("menuitem").first().waitFor();
    await expectNoViolations(page);
    expect(visit.problems()).toEqual([]);
  });
});
