/// <reference lib="dom" />
import { expect } from "bun:test";
import { join } from "node:path";
import { groupOf, say } from "@parley/testkit/client.ts";
import { sharedHarness, test } from "./support.ts";

const harness = sharedHarness();
const CLIENT = join(import.meta.dir, "../../packages/client");

/** The React example of the README, for a service at this address. */
async function example(url: string): Promise<string> {
  const readme = await Bun.file(join(CLIENT, "README.md")).text();
  const [, code = ""] = /```tsx\n(.*?)```/s.exec(readme) ?? [];
  return code.replace("http://localhost:8080", url);
}

async function bundle(code: string): Promise<string> {
  const entry = join(import.meta.dir, "readme-example.tsx");
  const { outputs } = await Bun.build({
    entrypoints: [entry],
    files: { [entry]: code },
    target: "browser",
  });
  return outputs[0]?.text() ?? "";
}

test("the React example of the SDK's README shows messages, those that arrive later too", async () => {
  const { person, browser, url } = harness();
  const [ada, bob] = await Promise.all([person("ada"), person("bob")]);
  const chat = await groupOf(ada, bob);
  await say(bob, chat, "written before");
  const context = await browser.newContext({ bypassCSP: true });
  try {
    const page = await context.newPage();
    await page.route("**/parley-token", (route) => route.fulfill({ body: ada.token }));
    await page.goto(`${url}/api/limits`);
    const code = await bundle(await example(url));
    await page.evaluate(async (text) => {
      document.body.innerHTML = '<div id="root"></div>';
      await import(URL.createObjectURL(new Blob([text], { type: "text/javascript" })));
    }, code);
    await page.getByText("written before").waitFor();
    await say(bob, chat, "written after");
    await page.getByText("written after").waitFor();
    expect(await page.locator("#root p").allTextContents()).toEqual([
      "written before",
      "written after",
    ]);
  } finally {
    await context.close();
  }
});
