import { expect } from "bun:test";
import { groupOf } from "@parley/testkit/client.ts";
import type { Page } from "playwright-core";
import { composer, message, sharedHouse, test, write } from "./support.ts";

const house = sharedHouse();

const focused = (page: Page) => page.evaluate(() => document.activeElement?.ariaLabel);

test("an emoji is found among hundreds, by its words or by the arrows, and remembered", async () => {
  const [ada, bob] = await Promise.all([house().person("ada"), house().person("bob")]);
  const chat = await groupOf(ada, bob);
  await using visit = await house().visit(ada, { path: `/c/${chat.id}` });
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

  await own.hover();
  await own.getByRole("button", { name: "React" }).click();
  await picker.getByRole("button", { name: "Food" }).click();
  await picker.getByRole("button", { name: "pizza" }).click();
  await own.getByRole("button", { name: "🍕, 1" }).waitFor();
  await page.getByRole("button", { name: "Insert an emoji" }).click();
  await page.keyboard.press("Escape");
  await picker.waitFor({ state: "detached" });
  expect(await focused(page)).toBe("Insert an emoji");
  expect(visit.problems()).toEqual([]);
});
