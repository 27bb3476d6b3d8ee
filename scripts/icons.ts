#!/usr/bin/env bun
/**
 * Draws the PNG icons of the web client from its SVG icon, with a browser: `bun scripts/icons.ts`.
 * Systems that crop icons to a shape of their own take the maskable one, which fills the square.
 */
import { join } from "node:path";
import { chromium } from "playwright-core";

const FOLDER = join(import.meta.dir, "../packages/web/public");
const svg = await Bun.file(join(FOLDER, "icon.svg")).text();
const filled = svg.replace(' rx="15"', "");
const icons = [
  ["icon-192.png", svg, 192],
  ["icon-512.png", svg, 512],
  ["icon-maskable.png", filled, 512],
] as const;

const browser = await chromium.launch({
  executablePath: "/usr/bin/chromium-headless-shell",
  args: ["--no-sandbox", "--disable-gpu"],
});
const page = await browser.newPage();
for (const [name, image, size] of icons) {
  await page.setViewportSize({ width: size, height: size });
  await page.setContent(`<style>body { margin: 0 } svg { display: block }</style>${image}`);
  await page.screenshot({ path: join(FOLDER, name), omitBackground: true });
}
await browser.close();
