/// <reference lib="dom" />
import { expect } from "bun:test";
import type { AxeResults, RunOptions } from "axe-core";
import type { Page } from "playwright-core";

const AXE = await Bun.file(Bun.resolveSync("axe-core/axe.min.js", import.meta.dir)).text();

interface Axe {
  run(options: RunOptions): Promise<AxeResults>;
}

/** Runs axe on the page in both themes. */
export async function expectNoViolations(page: Page): Promise<void> {
  for (const colorScheme of ["light", "dark"] as const) {
    expect([colorScheme, ...(await violations(page, colorScheme))]).toEqual([colorScheme]);
  }
}

async function violations(page: Page, colorScheme: "light" | "dark"): Promise<string[]> {
  await page.emulateMedia({ colorScheme });
  // Evaluated by the test, so that the content security policy of the page stays as it is.
  await page.evaluate(AXE);
  const { violations: found } = await page.evaluate((): Promise<AxeResults> => {
    const { axe } = globalThis as unknown as { axe: Axe };
    return axe.run({ resultTypes: ["violations"] });
  });
  return found.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 160)}`));
}
