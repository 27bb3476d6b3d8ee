import { afterAll, beforeAll, expect } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { agentOf, signUp } from "@parley/testkit/client.ts";
import { noRates, startServer, type TestServer } from "@parley/testkit/server.ts";
import { message, sharedHarness, test } from "./support.ts";

/** A server whose operator pays for one of two providers. */
const folder = mkdtempSync(join(tmpdir(), "parley-provided-"));
let server: TestServer;
beforeAll(async () => {
  const api_key_file = join(folder, "key");
  writeFileSync(api_key_file, "sandbox-of-the-operator");
  const provider = { protocol: "anthropic", base_url: "http://127.0.0.1:1", model: "model-a" };
  server = await startServer({
    ...noRates,
    PARLEY_PROVIDERS: JSON.stringify({
      house: { ...provider, display_name: "House", api_key_file },
      plain: { ...provider, display_name: "Plain" },
    }),
  });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

const harness = sharedHarness();

test("a provided agent is shown as such and answers without a key", async () => {
  const nora = await signUp(server.url, "nora");
  await using visit = await harness().visit(nora, { url: server.url });
  const { page } = visit;
  await page.getByRole("button", { name: /^House.*Provided by this server$/ }).waitFor();
  expect(await page.getByText("Store your own API key").count()).toBe(0);
  await page.getByRole("button", { name: /^House/ }).click();
  await page.getByRole("button", { name: "Say hello" }).click();
  await message(page, "I am the built-in sandbox").waitFor();
  const { items } = await nora.call("getMyAgents");
  expect(items.map(({ key_source, key_configured }) => [key_source, key_configured])).toEqual([
    ["operator", false],
    [null, false],
  ]);
  expect(visit.problems()).toEqual([]);
});

test("the card of a provided agent asks for no key, and takes one", async () => {
  const nora = await signUp(server.url, "nora");
  await using visit = await harness().visit(nora, { url: server.url, path: "/agents" });
  const { page } = visit;
  const card = page.getByRole("region").filter({ hasText: `@${agentOf(nora, "house")}` });
  await card.getByText("Provided by this server").waitFor();
  expect(await card.getByLabel("Your API key").count()).toBe(0);
  expect(await card.getByText("Without a key it cannot answer").count()).toBe(0);
  await nora.call("setAgentProfile", { provider: "house", model: "my-choice" });
  await card.getByRole("button", { name: "Edit" }).click();
  const editor = page.getByRole("dialog");
  expect(await editor.getByLabel("Model").isEditable()).toBe(false);
  await editor.getByLabel("Instructions").fill("Be brief.");
  await editor.getByRole("button", { name: "Save" }).click();
  await editor.waitFor({ state: "detached" });

  await card.getByRole("button", { name: "Use your own key" }).click();
  await card.getByLabel("Your API key").fill("sandbox-of-my-own-0123");
  await card.getByRole("button", { name: "Save" }).first().click();
  await card.getByText("••••••••0123").waitFor();
  // The choice of a model counts with one's own key, and an edit without it keeps it.
  await card.getByText("my-choice").waitFor();
  expect(await card.getByText("Provided by this server").count()).toBe(0);
  await card.getByRole("button", { name: "Remove" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Remove key" }).click();
  await card.getByText("Provided by this server").waitFor();
  expect(visit.problems()).toEqual([]);
});
