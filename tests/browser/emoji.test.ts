import { expect } from "bun:test";
import type { Page } from "playwright-core";
import { composer, groupChat, message, pressOn, sharedHarness, test, write } from "./support.ts";

const harness = sharedHarness();

const focused = (page: Page) => page.evaluate(() => document.activeElement?.ariaLabel);

test("an emoji is found by its name or with the arrow keys, and offered first the next time", async () => {
  const { ada, path } = await groupChat(harness());
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  await write(page, "Something to react to");
  const own = message(page, "Something to react to");
  await own.getByText("Sent").waitFor();

  await composer(page).focus();
  await page.getByRole("button", { name: "Insert an emoji" }).click();
  const picker = page.getByRole("dialog", { name: "Emoji" });
  await picker.getByRole("button", { name: "rocket" }).first().waitFor();
  expect(await picker.locator("[data-emoji]").count()).toBeGreaterThan(400);
  expect(await focused(page)).toBe("Find an emoji");

  await page.keyboard.type("turt");
  await page.keyboard.press("Enter");
  await picker.waitFor({ state: "detached" });
  expect(await composer(page).inputValue()).toBe("🐢");

  await page.getByRole("button", { name: "Insert an emoji" }).click();
  await picker.getByRole("group", { name: "Frequent" }).waitFor();
  await page.keyboard.press("ArrowDown");
  expect(await focused(page)).toBe("turtle");
  for (const [key, name] of [
    ["ArrowRight", "thumbs up"],
    ["ArrowDown", "thumbs down"],
    ["ArrowDown", "smiley"],
    ["ArrowLeft", "grinning"],
    ["ArrowUp", "check mark"],
    ["ArrowUp", "turtle"],
    ["ArrowUp", "Find an emoji"],
  ] as const) {
    await page.keyboard.press(key);
    expect([key, await focused(page)]).toEqual([key, name]);
  }
  await page.keyboard.press("ArrowDown");
  await page.keyboard.type("heart eyes");
  await page.keyboard.press("Enter");
  await picker.waitFor({ state: "detached" });
  expect(await composer(page).inputValue()).toBe("🐢😍");

  await pressOn(own, "React");
  await picker.getByRole("button", { name: "Food" }).click();
  await picker.getByRole("button", { name: "pizza" }).click();
  await own.getByRole("button", { name: "🍕, 1" }).waitFor();
  await page.getByRole("button", { name: "Insert an emoji" }).click();
  await page.keyboard.press("Escape");
  await picker.waitFor({ state: "detached" });
  expect(await focused(page)).toBe("Insert an emoji");
  expect(visit.problems()).toEqual([]);
});
