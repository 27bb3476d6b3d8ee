import { describe, expect } from "bun:test";
import { agentOf } from "@parley/testkit/client.ts";
import { until } from "@parley/testkit/until.ts";
import type { Locator, Page } from "playwright-core";
import { slowAgents } from "./slow-agents.ts";
import {
  agentChat,
  composer,
  groupChat,
  hasFocus,
  message,
  PHONE,
  pressOn,
  say,
  scroller,
  sharedHarness,
  showsBriefly,
  test,
  write,
} from "./support.ts";

const harness = sharedHarness();
const slowPerson = slowAgents();

const toolbars = (page: Page) => page.getByRole("toolbar", { name: "Message actions" });

async function boxOf(locator: Locator) {
  const box = await locator.boundingBox();
  if (!box) throw new Error("the element is not visible");
  return box;
}

describe("toolbars of messages", () => {
  test("only one is visible, at the message that was pointed at or focused last", async () => {
    const { ada, bob, chat, path } = await groupChat(harness());
    for (const word of ["Alpha", "Beta", "Gamma"]) await say(bob, chat, word);
    await using visit = await harness().visit(ada, { path });
    const { page } = visit;
    await message(page, "Gamma").focus();
    await message(page, "Gamma").getByRole("button", { name: "Reply" }).waitFor();
    await message(page, "Alpha").hover();
    await message(page, "Alpha").getByRole("button", { name: "Reply" }).waitFor();
    expect(await toolbars(page).count()).toBe(1);
    await message(page, "Gamma").focus();
    await page.keyboard.press("ArrowUp");
    await message(page, "Beta").getByRole("button", { name: "Reply" }).waitFor();
    expect(await toolbars(page).count()).toBe(1);
    // While a menu is open, the toolbar stays at its message.
    await message(page, "Beta").getByRole("button", { name: "More" }).click();
    await page.getByRole("menuitem", { name: "Copy text" }).waitFor();
    await message(page, "Alpha").hover({ force: true });
    expect(await toolbars(page).count()).toBe(1);
    expect(visit.problems()).toEqual([]);
  });

  test("the toolbar of a long message stays in view", async () => {
    const { ada, bob, chat, path } = await groupChat(harness());
    await say(bob, chat, `Alpha${"\n\nand more".repeat(60)}`);
    await using visit = await harness().visit(ada, { path });
    const { page } = visit;
    await message(page, "Alpha").waitFor();
    await page.getByText("and more").last().hover();
    const { y: top } = await boxOf(toolbars(page));
    expect(top).toBeGreaterThan((await boxOf(scroller(page))).y);
    expect(visit.problems()).toEqual([]);
  });

  test("the toolbar does not cover the name of the sender while the details are open", async () => {
    const { ada, bob, chat, path } = await groupChat(harness());
    await say(bob, chat, "Short");
    await using visit = await harness().visit(ada, { path });
    const { page } = visit;
    await page.getByRole("button", { name: "Members and agents" }).click();
    await page.getByRole("button", { name: "Close details" }).waitFor();
    await message(page, "Short").hover();
    await message(page, "Short").getByRole("button", { name: "Reply" }).waitFor();
    const bar = await boxOf(toolbars(page));
    const name = await boxOf(message(page, "Short").getByText(bob.username, { exact: true }));
    const covered = bar.x < name.x + name.width && bar.y < name.y + name.height;
    expect(covered && bar.x + bar.width > name.x && bar.y + bar.height > name.y).toBe(false);
    expect(bar.x + bar.width).toBeLessThanOrEqual(1280 - 336);
  });

  test("the menu does not clip its commands", async () => {
    const { ada, path } = await groupChat(harness());
    await using visit = await harness().visit(ada, { path });
    const { page } = visit;
    await write(page, "Mine");
    await pressOn(message(page, "Mine"), "More");
    const rows = page.getByRole("menuitem");
    await rows.last().waitFor();
    for (const row of await rows.all()) {
      const [inside, height] = await row.evaluate((one) => [one.scrollHeight, one.clientHeight]);
      expect(height).toBe(36);
      expect(inside).toBe(36);
    }
  });

  test("the toolbar of the latest answer is always visible unless another one is", async () => {
    const { ada, path } = await agentChat(harness());
    await using visit = await harness().visit(ada, { path });
    const { page } = visit;
    await write(page, "alert");
    const answer = message(page, "I can pretend to watch");
    await answer.getByRole("button", { name: "Reply" }).waitFor();
    expect(await toolbars(page).count()).toBe(1);
    const question = page.getByRole("article").first();
    await question.hover();
    await question.getByRole("button", { name: "Reply" }).waitFor();
    expect(await toolbars(page).count()).toBe(1);
    await answer.hover();
    await answer.getByRole("button", { name: "Reply" }).waitFor();
    expect(await toolbars(page).count()).toBe(1);

    await write(page, "Thank you");
    await message(page, "I am the built-in sandbox").waitFor();
    // While an answer streams, the messages move under the pointer.
    const stop = page.locator("form").getByRole("button", { name: "Stop" });
    await stop.waitFor({ state: "detached" });
    await pressOn(answer, "Reply");
    await page.getByText("Replying to Claude").waitFor();
    expect(visit.problems()).toEqual([]);
  });

  test("the toolbar of an answer is visible when the pointer rests where it streamed", async () => {
    const ada = await slowPerson("ada");
    const chat = await ada.call("startChat", { usernames: [agentOf(ada)] });
    await using visit = await harness().visit(ada, { path: `/c/${chat.id}`, url: ada.url });
    const { page } = visit;
    await write(page, "slow");
    const answer = page.getByRole("article").last();
    await pressOn(answer, "Stop");
    await answer.getByText("Stopped", { exact: true }).waitFor();
    await answer.getByRole("button", { name: "Reply" }).waitFor();
    expect(visit.problems()).toEqual([]);
  });

  test("the toolbar of a long answer is at its end", async () => {
    const { ada, path } = await agentChat(harness());
    await using visit = await harness().visit(ada, { path });
    const { page } = visit;
    await write(page, "long");
    const answer = message(page, "A long answer from the sandbox");
    await answer.getByText("it would not have been free of charge").waitFor();
    const stop = page.locator("form").getByRole("button", { name: "Stop" });
    await stop.waitFor({ state: "detached" });
    const reply = answer.getByRole("button", { name: "Reply" });
    await reply.waitFor();
    const end = await boxOf(answer.getByText("it would not have been free of charge"));
    const button = await boxOf(reply);
    const form = await boxOf(page.locator("form"));
    expect(button.y).toBeGreaterThan(end.y + end.height - 4);
    expect(button.y + button.height).toBeLessThanOrEqual(form.y);
    await reply.click();
    await page.getByText("Replying to Claude").waitFor();
    expect(visit.problems()).toEqual([]);
  });
  test("the toolbar of an answer does not cover the name above the next answer", async () => {
    const { ada, path } = await agentChat(harness());
    await using visit = await harness().visit(ada, { path });
    const { page } = visit;
    await write(page, "alert");
    const first = message(page, "I can pretend to watch");
    await first.getByRole("button", { name: "Set alert" }).click();
    const next = message(page, "Alert set").last();
    await next.getByText("Set by").waitFor();
    for (const width of [1280, 700]) {
      await page.setViewportSize({ width, height: 800 });
      const bar = first.getByRole("toolbar", { name: "Message actions" });
      await until(async () => {
        await first.hover();
        return bar.isVisible();
      }, "the toolbar");
      const { y, height } = await boxOf(bar);
      const name = await boxOf(next.getByText("Claude", { exact: true }));
      expect(y + height).toBeLessThanOrEqual(name.y);
    }
    expect(visit.problems()).toEqual([]);
  });
});

describe("how messages look", () => {
  test("turns are 20 to 24 pixels apart, and only own messages are tinted", async () => {
    const { ada, bob, chat, path } = await groupChat(harness());
    await say(bob, chat, "From Bob");
    const own = await say(ada, chat, "From Ada");
    await say(bob, chat, "From Bob again");
    await ada.call("setMessageReaction", { message_id: own.id, emoji: "👍" });
    for (const viewport of [PHONE.viewport, { width: 1280, height: 800 }]) {
      await using visit = await harness().visit(ada, { path, viewport });
      const { page } = visit;
      await message(page, "From Bob again").waitFor();
      const gaps = await page.evaluate(() =>
        [...document.querySelectorAll("article")].map((article) =>
          Number.parseFloat(getComputedStyle(article).paddingTop),
        ),
      );
      for (const gap of gaps) expect(gap).toBeOneOf([20, 24]);
      const tinted = await page.getByRole("feed").evaluate((feed) => {
        const probe = document.createElement("div");
        probe.style.background = "var(--color-accent-soft)";
        feed.append(probe);
        const tint = getComputedStyle(probe).backgroundColor;
        probe.remove();
        return [...feed.querySelectorAll("*")]
          .filter((element) => getComputedStyle(element).backgroundColor === tint)
          .map((element) => element.textContent);
      });
      expect(tinted).toEqual(["From Ada"]);
    }
  });

  test("task lists have boxes instead of bullets", async () => {
    const { ada, bob, chat, path } = await groupChat(harness());
    await say(bob, chat, "- [x] Write it\n- [ ] Send it\n- A plain item");
    await using visit = await harness().visit(ada, { path });
    const { page } = visit;
    const items = message(page, "Write it").getByRole("listitem");
    await items.first().waitFor();
    const styles = await items.evaluateAll((all) =>
      all.map((item) => getComputedStyle(item).listStyleType),
    );
    expect(styles).toEqual(["none", "none", "disc"]);
    await items.nth(0).getByRole("img", { name: "Done", exact: true }).waitFor();
    await items.nth(1).getByRole("img", { name: "Not done" }).waitFor();
    expect(visit.problems()).toEqual([]);
  });

  test("the day floats above the messages during scrolling, and is yesterday after midnight", async () => {
    const { ada, bob, chat, path } = await groupChat(harness());
    for (let number = 1; number <= 40; number++) await say(bob, chat, `Number ${number}`);
    await say(ada, chat, "The last word");
    await using visit = await harness().visit(ada, { path });
    const { page } = visit;
    await page.clock.install();
    await page.reload();
    await message(page, "The last word").waitFor();
    const floating = page.locator("main p[aria-hidden]", { hasText: "Today" });
    expect(await floating.count()).toBe(0);
    await scroller(page).hover();
    // Time stands still, because the day is shown for a moment only.
    await page.clock.pauseAt(Date.now() + 60_000);
    await page.mouse.wheel(0, -300);
    await floating.waitFor();
    await page.clock.resume();
    await floating.waitFor({ state: "detached" });

    await scroller(page).evaluate((box) => box.scrollTo(0, 0));
    await page.getByRole("feed").getByText("Today").waitFor();
    await page.clock.fastForward("24:00:00");
    await page.getByRole("feed").getByText("Yesterday").waitFor();
    expect(visit.problems()).toEqual([]);
  });

  test("no focus ring is clipped", async () => {
    const { ada, bob, chat, path } = await groupChat(harness());
    const first = await say(bob, chat, "```ts\nconst a = 1;\n```\n\n| a |\n|---|\n| 1 |");
    await bob.call("setMessageReaction", { message_id: first.id, emoji: "👍" });
    await using visit = await harness().visit(ada, { path });
    const { page } = visit;
    await message(page, "const a").focus();
    const reached: string[] = [];
    for (let step = 0; step < 12; step++) {
      const { name, clipped } = await page.evaluate(focusRing);
      expect([name, clipped]).toEqual([name, false]);
      reached.push(name);
      await page.keyboard.press("Tab");
    }
    for (const name of ["ARTICLE", "PRE", "BUTTON", "SECTION"]) expect(reached).toContain(name);
    expect(visit.problems()).toEqual([]);
  });
});

describe("who reacted", () => {
  test("is shown on hover and focus, and as a list by keyboard", async () => {
    const { ada, bob, chat, path } = await groupChat(harness());
    const { id: message_id } = await say(bob, chat, "Look at this");
    for (const who of [bob, ada]) await who.call("addReaction", { message_id, emoji: "🎉" });
    await bob.call("addReaction", { message_id, emoji: "👍" });
    await using visit = await harness().visit(ada, { path });
    const { page } = visit;
    const pill = message(page, "Look at this").getByRole("button", { name: "🎉, 2" });
    await pill.hover();
    await page.getByRole("tooltip", { name: `${bob.username} and You` }).waitFor();
    await composer(page).hover();
    await page.getByRole("tooltip").waitFor({ state: "detached" });
    await message(page, "Look at this").focus();
    await page.keyboard.press("Tab");
    while (!(await hasFocus(pill))) {
      await page.keyboard.press("Tab");
    }
    await page.getByRole("tooltip").waitFor();
    // The tooltip includes later reactions.
    const carol = await harness().person("carol");
    await ada.call("addChatMembers", { chat_id: chat.id, usernames: [carol.username] });
    await carol.call("addReaction", { message_id, emoji: "🎉" });
    await page.getByRole("tooltip").getByText(carol.username).waitFor();

    await message(page, "Look at this").focus();
    await message(page, "Look at this").getByRole("button", { name: "More" }).press("Enter");
    await page.getByRole("menuitem", { name: "Who reacted" }).press("Enter");
    const list = page.getByRole("dialog", { name: "Who reacted" });
    await list.getByText(`@${carol.username}`).waitFor();
    expect(await list.getByRole("listitem").count()).toBe(4);
    await page.keyboard.press("Escape");
    await list.waitFor({ state: "detached" });
    expect(visit.problems()).toEqual([]);
  });
});

test("every edited message is marked as edited, for its author and for others", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  const edited = [await say(ada, chat, "Alpha"), await say(ada, chat, "Beta")];
  await say(ada, chat, "Gamma");
  for (const { id, content } of edited) {
    await ada.call("editMessage", { message_id: id, content: `${content}, corrected` });
  }
  for (const reader of [ada, bob]) {
    await using visit = await harness().visit(reader, { path });
    const { page } = visit;
    await message(page, "Gamma").waitFor();
    const shown = await page.getByRole("article").allInnerTexts();
    expect(shown.map((text) => text.includes("edited"))).toEqual([true, true, false]);
    expect(visit.problems()).toEqual([]);
  }
});

test("who is typing is one line with short names, between the toolbar of an answer and the composer", async () => {
  const { ada, chat: agents } = await agentChat(harness());
  const bob = await harness().person("bob");
  await bob.call("updateMe", { display_name: `Benjamin ${"Maximilian".repeat(5)}` });
  const chat = await ada.call("startChat", {
    usernames: [bob.username, ...agents.participants.map(({ username }) => username)],
    title: "Group",
  });
  await say(ada, chat, `@${agentOf(ada)} alert`);
  await using writing = await bob.connect();
  const type = () => writing.call("sendChatAction", { chat_id: chat.id, action: "typing" });
  for (const options of [{}, PHONE]) {
    await using visit = await harness().visit(ada, { path: `/c/${chat.id}`, ...options });
    const { page } = visit;
    await message(page, "I can pretend to watch")
      .getByRole("button", { name: "Not now" })
      .waitFor();
    const line = page.getByText("Benjamin is typing", { exact: true }).last();
    await showsBriefly(line, type);
    const { y, height } = await boxOf(line);
    const form = await boxOf(page.locator("form"));
    expect(height).toBeLessThan(24);
    // The composer has a ring of three pixels when it has the focus.
    expect(y + height).toBeLessThanOrEqual(form.y - 3);
    for (const bar of await toolbars(page).all()) {
      const box = await boxOf(bar);
      expect(box.y + box.height).toBeLessThanOrEqual(y);
    }
    expect(visit.problems()).toEqual([]);
  }
});

/** The focused element, and whether an ancestor clips its focus ring. */
function focusRing(): { name: string; clipped: boolean } {
  const element = document.activeElement ?? document.body;
  const { outlineStyle, outlineWidth, outlineOffset } = getComputedStyle(element);
  const ring =
    outlineStyle === "none"
      ? 0
      : Number.parseFloat(outlineWidth) + Number.parseFloat(outlineOffset);
  const { left, right, top, bottom } = element.getBoundingClientRect();
  let clipped = false;
  for (let box = element.parentElement; box && ring > 0; box = box.parentElement) {
    const { overflowX, overflowY } = getComputedStyle(box);
    const edge = box.getBoundingClientRect();
    const cutsX = overflowX !== "visible" && (left - ring < edge.left || right + ring > edge.right);
    const cutsY = overflowY !== "visible" && (top - ring < edge.top || bottom + ring > edge.bottom);
    if (box.scrollHeight > box.clientHeight && overflowY !== "hidden") break;
    clipped ||= cutsX || cutsY;
  }
  return { name: element.tagName, clipped };
}

test("entities of HTML in a message are shown as their characters, and make no elements", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  await say(bob, chat, "&copy; &lt;b&gt;bold&lt;/b&gt; &nosuch; &#9731;");
  await using visit = await harness().visit(ada, { path });
  const shown = message(visit.page, "© <b>bold</b> &nosuch; ☃");
  await shown.waitFor();
  expect(await shown.locator("b").count()).toBe(0);
  expect(visit.problems()).toEqual([]);
});
