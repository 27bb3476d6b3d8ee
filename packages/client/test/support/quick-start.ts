import { expect } from "bun:test";

/** The first example of the README, with the address of a test server. */
export async function quickStart(url: string): Promise<string> {
  const readme = await Bun.file(new URL("../../README.md", import.meta.url)).text();
  const [, code = ""] = /^```ts\n(.*?)^```$/ms.exec(readme) ?? [];
  const here = code.replace("http://localhost:8080", url);
  expect(here).not.toBe(code);
  return here;
}
