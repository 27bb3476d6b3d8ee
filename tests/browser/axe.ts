/// <reference lib="dom" />
import { expect } from "bun:test";
import type { AxeResults, RunOptions } from "axe-core";
import type { Page } from "playwright-core";

const AXE = await Bun.file(Bun.resolveSync("axe-core/axe.min.js", import.meta.dir)).text();

interface Axe {
  run(options: RunOptions): Promise<AxeResults>;
}

/** The rules whose result depends on colours. */
const OF_COLOURS = ["color-contrast", "link-in-text-block"];

/** Runs axe on the page in both themes, in the dark one with the rules about colours. */
export async function expectNoViolations(page: Page): Promise<void> {
  await page.emulateMedia({ colorScheme: "light" });
  // Evaluated by the test, so that the content security policy of the page stays as it is.
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(AXE);
  expect(["light", ...(await violations(page, {}))]).toEqual(["light"]);
  await page.emulateMedia({ colorScheme: "dark" });
  expect(["dark", ...(await violations(page, { runOnly: OF_COLOURS }))]).toEqual(["dark"]);
}

async function violations(page: Page, options: RunOptions): Promise<string[]> {
  const { violations: found } = await page.evaluate((chosen): Promise<AxeResults> => {
    const { axe } = globalThis as unknown as { axe: Axe };
    return axe.run({ resultTypes: ["violations"], ...chosen });
  }, options);
  return found.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 160)}`));
}
