import { expect } from "bun:test";
import { agentOf } from "@parley/testkit/client.ts";
import {
  composer,
  giveSandboxKey,
  groupChat,
  message,
  PHONE,
  say,
  sharedHarness,
  showsBriefly,
  test,
  twoPeople,
} from "./support.ts";

const harness = sharedHarness();

test("agents are shown by their own name and their owner in lists", async () => {
  const { ada, bob } = await twoPeople(harness());
  await giveSandboxKey(ada);
  const own = await ada.call("startChat", { usernames: [agentOf(ada)] });
  const group = await ada.call("startChat", {
    usernames: [bob.username, agentOf(ada)],
    title: "Together",
  });
  await bob.call("addGroupAgent", { chat_id: group.id, agent_username: agentOf(bob, "gpt") });
  await using visit = await harness().visit(ada, { path: `/c/${own.id}` });
  const { page } = visit;
  await page.getByRole("link", { name: /^Claude yours/ }).waitFor();
  await page.getByRole("heading", { name: "Claude", level: 1 }).waitFor();

  await page.getByRole("link", { name: /^Together/ }).click();
  await say(ada, group, `@${agentOf(ada)} hello`);
  await message(page, "I am the built-in sandbox").waitFor();
  await page.getByRole("link", { name: /^Together.*Claude: Hello/ }).waitFor();
  await page.getByRole("button", { name: "Members and agents" }).click();
  const details = page.getByRole("complementary", { name: "Details" });
  await details.getByText("Claude", { exact: true }).waitFor();
  await details.getByText("GPT", { exact: true }).first().waitFor();
  await details.getByText(`@${bob.username}`, { exact: true }).first().waitFor();

  await page.getByRole("button", { name: "New conversation" }).click();
  await page.getByRole("combobox").fill(agentOf(ada));
  await page.getByRole("option", { name: /^Claude\s*yours/ }).waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox").fill("claude");
  await page
    .getByRole("option", { name: /^Claude\s*yours/ })
    .first()
    .waitFor();
  expect(visit.problems()).toEqual([]);
});

test("the list shows the username beside names that could be confused", async () => {
  const [ada, bob, mallory] = await Promise.all(
    ["ada", "bob", "mallory"].map((name) => harness().person(name)),
  );
  if (!ada || !bob || !mallory) throw new Error("three people were signed up");
  const carol = await harness().person("carol");
  const unique = `Robert ${bob.username.replace(/\W|_|\d/g, "")}`;
  await bob.call("updateMe", { display_name: unique });
  await mallory.call("updateMe", { display_name: unique.replace("o", "о") });
  for (const other of [bob, mallory, carol]) {
    const { id: chat_id } = await other.call("startChat", { usernames: [ada.username] });
    await other.call("sendMessage", { chat_id, content: "Hi" });
  }
  await using visit = await harness().visit(ada);
  const { page } = visit;
  const list = page.getByRole("navigation", { name: "Conversation list" });
  await list.getByText(`@${bob.username}`).waitFor();
  await list.getByText(`@${mallory.username}`).waitFor();
  expect(await list.getByText(`@${carol.username}`).count()).toBe(0);
  expect(visit.problems()).toEqual([]);
});

test("rows of the list have one height, and titles that differ only at their end are distinguishable", async () => {
  const { ada, bob } = await twoPeople(harness());
  const region = "Quarterly planning for the whole of the northern region and its neighbours";
  for (const title of [`${region}: design`, `${region}: engineering`, "Short"]) {
    await ada.call("startChat", { usernames: [bob.username], title });
  }
  const { id } = await ada.call("startChat", { usernames: [agentOf(ada)] });
  await ada.call("setChatTitle", { chat_id: id, title: "What the agent is asked every morning" });
  await using visit = await harness().visit(ada);
  const { page } = visit;
  const list = page.getByRole("navigation", { name: "Conversation list" });
  for (const part of ["design", "engineering"]) {
    const row = list.getByRole("link", { name: `${region}: ${part}` });
    const end = row.getByText(part, { exact: true });
    expect(await end.evaluate((each) => each.scrollWidth - each.clientWidth)).toBe(0);
    const [outer, inner] = [await row.boundingBox(), await end.boundingBox()];
    if (!outer || !inner) throw new Error("the row is not visible");
    expect(inner.x + inner.width).toBeLessThanOrEqual(outer.x + outer.width);
  }
  await list.getByRole("link", { name: /every morning Claude/ }).waitFor();
  const heights = await list
    .getByRole("link")
    .evaluateAll((rows) => rows.map((row) => row.getBoundingClientRect().height));
  expect(heights).toHaveLength(4);
  expect(new Set(heights).size).toBe(1);
  expect(visit.problems()).toEqual([]);
});

test("the first message of a stranger shows the username until it is answered", async () => {
  const { ada, bob } = await twoPeople(harness());
  await bob.call("updateMe", { display_name: "Your bank" });
  const chat = await bob.call("startChat", { usernames: [ada.username] });
  await say(bob, chat, "Please call me");
  await say(bob, chat, "It is urgent");
  await using visit = await harness().visit(ada, { path: `/c/${chat.id}` });
  const { page } = visit;
  await message(page, "Please call me").getByText(`@${bob.username}`).waitFor();
  expect(await message(page, "It is urgent").getByText(`@${bob.username}`).count()).toBe(0);
  await page.getByRole("heading", { name: "Your bank", level: 1 }).waitFor();
  await say(ada, chat, "I do not know you");
  await message(page, "I do not know you").waitFor();
  await message(page, "Please call me")
    .getByText(`@${bob.username}`)
    .waitFor({ state: "detached" });
  expect(visit.problems()).toEqual([]);
});

test("agents have a chip with their owner above their messages", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  for (const owner of [ada, bob]) {
    await giveSandboxKey(owner);
    await owner.call("addGroupAgent", { chat_id: chat.id, agent_username: agentOf(owner) });
  }
  await say(ada, chat, `@${agentOf(ada)} help`);
  await say(bob, chat, `@${agentOf(bob)} help`);
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  const header = (chip: string) =>
    page.getByRole("article").locator("p").filter({ hasText: "Claude" }).getByText(chip, {
      exact: true,
    });
  await header("yours").waitFor();
  await header(`@${bob.username}`).waitFor();
  expect(await page.locator("article [data-provider=claude]").count()).toBe(2);
  expect(visit.problems()).toEqual([]);
});

test("messages show the username beside names that could be confused, and long names wrap", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  const eve = await harness().person("eve");
  const long = "Margaret Elizabeth Hamilton of the Apollo Guidance Software Team";
  await bob.call("updateMe", { display_name: long });
  // A lower-case l instead of the capital I.
  await ada.call("updateMe", { display_name: "Ida" });
  await eve.call("updateMe", { display_name: "lda" });
  await ada.call("addChatMembers", { chat_id: chat.id, usernames: [eve.username] });
  await say(ada, chat, "Who is here?");
  await say(eve, chat, "It is me");
  await say(bob, chat, "And me");
  await using visit = await harness().visit(ada, { path, ...PHONE });
  const { page } = visit;
  await message(page, "It is me").getByText(`@${eve.username}`).waitFor();
  expect(await message(page, "And me").getByText(`@${bob.username}`).count()).toBe(0);
  const name = message(page, "And me").getByText(long);
  expect(await name.evaluate((element) => element.scrollWidth - element.clientWidth)).toBe(0);

  await using writing = await eve.connect();
  await showsBriefly(page.getByText(`@${eve.username} is typing`), () =>
    writing.call("sendChatAction", { chat_id: chat.id, action: "typing" }),
  );
  await composer(page).fill("@lda");
  await page.getByRole("option", { name: `@${eve.username}` }).waitFor();
  expect(visit.problems()).toEqual([]);
});
