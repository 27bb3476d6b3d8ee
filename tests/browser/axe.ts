/// <reference lib="dom" />
import { expect } from "bun:test";
import type { AxeResults, RunOptions } from "axe-core";
import type { Locator, Page } from "playwright-core";

const AXE = await Bun.file(Bun.resolveSync("axe-core/axe.min.js", import.meta.dir)).text();

interface Axe {
  run(element: Element, options: RunOptions): Promise<AxeResults>;
}

/** The rules whose result depends on colours. */
const OF_COLOURS = ["color-contrast", "link-in-text-block"];

/** No frame holds anything of the client, and no rule that runs looks into style sheets or media. */
const QUICK: RunOptions = { resultTypes: ["violations"], iframes: false, preload: false };

/**
 * Runs axe in both themes, in the dark one with the rules about colours. On the page all rules run; on a part
 * of a screen that another test checks as a whole, those about its elements run, in half of the time.
 */
export async function expectNoViolations(shown: Page | Locator): Promise<void> {
  const [page, part] = "page" in shown ? [shown.page(), shown] : [shown, shown.locator(":root")];
  await page.emulateMedia({ colorScheme: "light" });
  // Evaluated by the test, so that the content security policy of the page stays as it is.
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(AXE);
  expect(["light", ...(await violations(part, QUICK))]).toEqual(["light"]);
  await page.emulateMedia({ colorScheme: "dark" });
  expect(["dark", ...(await violations(part, { ...QUICK, runOnly: OF_COLOURS }))]).toEqual([
    "dark",
  ]);
}

async function violations(part: Locator, options: RunOptions): Promise<string[]> {
  const { violations: found } = await part.evaluate((element, chosen): Promise<AxeResults> => {
    const { axe } = globalThis as unknown as { axe: Axe };
    return axe.run(element, chosen);
  }, options);
  return found.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 160)}`));
}
