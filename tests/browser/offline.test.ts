import { expect } from "bun:test";
import { groupOf } from "../support/client.ts";
import { wireTo } from "./proxy.ts";
import { composer, message, sharedHouse, test, write } from "./support.ts";

const house = sharedHouse();

test("what is written offline is kept, sent once when the connection is back, and caught up with", async () => {
  const [ada, bob] = await Promise.all([house().person("ada"), house().person("bob")]);
  const chat = await groupOf(ada, bob);
  using wire = wireTo(house().url);
  const options = { path: `/c/${chat.id}`, url: wire.url, networkFails: true };
  await using visit = await house().visit(ada, options);
  const { page } = visit;
  await composer(page).waitFor();
  await write(page, "Before the storm");
  await page.getByText("Sent").waitFor();

  wire.cut();
  await page.getByText("You are offline").waitFor();
  await write(page, "Written without a connection");
  await message(page, "Written without a connection").getByText("Sending").waitFor();
  await bob.call("sendMessage", { chat_id: chat.id, content: "Said in the meantime" });

  wire.mend();
  await page.getByText("You are offline").waitFor({ state: "detached" });
  await message(page, "Said in the meantime").waitFor();
  await message(page, "Written without a connection").getByText("Sent").waitFor();
  const { items } = await bob.call("getChatHistory", { chat_id: chat.id });
  expect(items.map(({ content }) => content).toSorted()).toEqual([
    "Before the storm",
    "Said in the meantime",
    "Written without a connection",
  ]);
  expect(await page.getByRole("article").count()).toBe(3);
  expect(visit.problems()).toEqual([]);
});

test("drafts survive a reload", async () => {
  const [ada, bob] = await Promise.all([house().person("ada"), house().person("bob")]);
  const chat = await groupOf(ada, bob);
  await using visit = await house().visit(ada, { path: `/c/${chat.id}` });
  const { page } = visit;
  await composer(page).fill("Half a thought");
  await page.reload();
  await composer(page).waitFor();
  expect(await composer(page).inputValue()).toBe("Half a thought");
  expect(visit.problems()).toEqual([]);
});
