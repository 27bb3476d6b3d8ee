import { describe, expect } from "bun:test";
import { agentOf, groupOf, type Person } from "@parley/testkit/client.ts";
import type { Locator, Page } from "playwright-core";
import {
  composer,
  giveSandboxKey,
  message,
  prepare,
  scroller,
  sharedHouse,
  test,
  write,
} from "./support.ts";

const house = sharedHouse();
const phone = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true };

async function withBob() {
  const [ada, bob] = await Promise.all([house().person("ada"), house().person("bob")]);
  const chat = await groupOf(ada, bob);
  return { ada, bob, chat, path: `/c/${chat.id}` };
}

const say = (who: Person, chat: { id: string }, content: string) =>
  who.call("sendMessage", { chat_id: chat.id, content });

const toolbars = (page: Page) => page.getByRole("toolbar", { name: "Message actions" });

async function boxOf(locator: Locator) {
  const box = await locator.boundingBox();
  if (!box) throw new Error("it is not in sight");
  return box;
}

describe("toolbars of messages", () => {
  test("there is only one, wherever the pointer and the focus are", async () => {
    const { ada, bob, chat, path } = await withBob();
    for (const word of ["Alpha", "Beta", "Gamma"]) await say(bob, chat, word);
    await using visit = await house().visit(ada, { path });
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
    // An open menu keeps its message, whatever is pointed at meanwhile.
    await message(page, "Beta").getByRole("button", { name: "More" }).click();
    await page.getByRole("menuitem", { name: "Copy text" }).waitFor();
    await message(page, "Alpha").hover({ force: true });
    expect(await toolbars(page).count()).toBe(1);
    expect(visit.problems()).toEqual([]);
  });

  test("beside the details it leaves the name of whoever wrote in sight", async () => {
    const { ada, bob, chat, path } = await withBob();
    await say(bob, chat, "Short");
    await using visit = await house().visit(ada, { path });
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

  test("its menu shows every command whole", async () => {
    const { ada, path } = await withBob();
    await using visit = await house().visit(ada, { path });
    const { page } = visit;
    await write(page, "Mine");
    await message(page, "Mine").hover();
    await message(page, "Mine").getByRole("button", { name: "More" }).click();
    const rows = page.getByRole("menuitem");
    await rows.last().waitFor();
    for (const row of await rows.all()) {
      const [inside, height] = await row.evaluate((one) => [one.scrollHeight, one.clientHeight]);
      expect(height).toBe(36);
      expect(inside).toBe(36);
    }
  });

  test("that of the latest answer makes room for another", async () => {
    const ada = await house().person("ada");
    await giveSandboxKey(ada);
    const chat = await ada.call("startChat", { usernames: [agentOf(ada)] });
    await using visit = await house().visit(ada, { path: `/c/${chat.id}` });
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
    // While words come, the messages move below the pointer.
    const stop = page.locator("form").getByRole("button", { name: "Stop" });
    await stop.waitFor({ state: "detached" });
    await answer.hover();
    await answer.getByRole("button", { name: "Reply" }).click();
    await page.getByText("Replying to Claude").waitFor();
    expect(visit.problems()).toEqual([]);
  });

  test("what can be done with a long answer is at its end", async () => {
    const ada = await house().person("ada");
    await giveSandboxKey(ada);
    const chat = await ada.call("startChat", { usernames: [agentOf(ada)] });
    await using visit = await house().visit(ada, { path: `/c/${chat.id}` });
    const { page } = visit;
    await write(page, "long");
    const answer = message(page, "A long answer from the sandbox");
    await answer.getByText("it would not have been free of charge").waitFor();
    const stop = page.locator("form").getByRole("button", { name: "Stop" });
    await stop.waitFor({ state: "detached" });
    const reply = answer.getByRole("button", { name: "Reply" });
    await reply.waitFor();
    const end = await answer.getByText("it would not have been free of charge").boundingBox();
    const at = await reply.boundingBox();
    expect(at?.y ?? 0).toBeGreaterThan((end?.y ?? 0) + (end?.height ?? 0) - 4);
    expect((at?.y ?? 0) + (at?.height ?? 0)).toBeLessThanOrEqual(await top(page.locator("form")));
    await reply.click();
    await page.getByText("Replying to Claude").waitFor();
    expect(visit.problems()).toEqual([]);
  });
});

describe("how messages look", () => {
  test("20 to 24 pixels between turns, and the tint of one's own on nothing else", async () => {
    const { ada, bob, chat, path } = await withBob();
    await say(bob, chat, "From Bob");
    const own = await say(ada, chat, "From Ada");
    await say(bob, chat, "From Bob again");
    await prepare(ada, "setMessageReaction", { message_id: own.id, emoji: "👍" });
    for (const viewport of [phone.viewport, { width: 1280, height: 800 }]) {
      await using visit = await house().visit(ada, { path, viewport });
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

  test("agents have their own name and a chip with their owner", async () => {
    const { ada, bob, chat, path } = await withBob();
    for (const owner of [ada, bob]) {
      await giveSandboxKey(owner);
      await prepare(owner, "addGroupAgent", { chat_id: chat.id, agent_username: agentOf(owner) });
    }
    await say(ada, chat, `@${agentOf(ada)} help`);
    await say(bob, chat, `@${agentOf(bob)} help`);
    await using visit = await house().visit(ada, { path });
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

  test("the @username is shown where names could be mistaken, and names wrap", async () => {
    const { ada, bob, chat, path } = await withBob();
    const eve = await house().person("eve");
    const long = "Margaret Elizabeth Hamilton of the Apollo Guidance Software Team";
    await prepare(bob, "updateMe", { display_name: long });
    // A small l in place of the capital I.
    await prepare(ada, "updateMe", { display_name: "Ida" });
    await prepare(eve, "updateMe", { display_name: "lda" });
    await prepare(ada, "addChatMembers", { chat_id: chat.id, usernames: [eve.username] });
    await say(eve, chat, "It is me");
    await say(bob, chat, "And me");
    await using visit = await house().visit(ada, { path, ...phone });
    const { page } = visit;
    await message(page, "It is me").getByText(`@${eve.username}`).waitFor();
    expect(await message(page, "And me").getByText(`@${bob.username}`).count()).toBe(0);
    const name = message(page, "And me").getByText(long);
    expect(await name.evaluate((element) => element.scrollWidth - element.clientWidth)).toBe(0);

    await using writing = await eve.connect();
    await writing.call("sendChatAction", { chat_id: chat.id, action: "typing" });
    await page.getByText(`lda (@${eve.username}) is typing`).waitFor();
    await composer(page).fill("@lda");
    await page.getByRole("option", { name: `@${eve.username}` }).waitFor();
    expect(visit.problems()).toEqual([]);
  });

  test("task lists have boxes in place of bullets", async () => {
    const { ada, bob, chat, path } = await withBob();
    await say(bob, chat, "- [x] Write it\n- [ ] Send it\n- A plain item");
    await using visit = await house().visit(ada, { path });
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

  test("the day floats above the messages while one scrolls", async () => {
    const { ada, bob, chat, path } = await withBob();
    for (let number = 1; number <= 40; number++) await say(bob, chat, `Number ${number}`);
    await say(ada, chat, "The last word");
    await using visit = await house().visit(ada, { path });
    const { page } = visit;
    await message(page, "The last word").waitFor();
    const floating = page.locator("main p[aria-hidden]", { hasText: "Today" });
    expect(await floating.count()).toBe(0);
    await scroller(page).hover();
    const seen = floating.waitFor();
    await page.mouse.wheel(0, -300);
    await seen;
    await floating.waitFor({ state: "detached" });
    expect(visit.problems()).toEqual([]);
  });

  test("no focus ring is cut off", async () => {
    const { ada, bob, chat, path } = await withBob();
    const first = await say(bob, chat, "```ts\nconst a = 1;\n```\n\n| a |\n|---|\n| 1 |");
    await prepare(bob, "setMessageReaction", { message_id: first.id, emoji: "👍" });
    await using visit = await house().visit(ada, { path });
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
  test("is told on hover and focus, and listed by keyboard", async () => {
    const { ada, bob, chat, path } = await withBob();
    const { id: message_id } = await say(bob, chat, "Look at this");
    for (const who of [bob, ada]) await prepare(who, "addReaction", { message_id, emoji: "🎉" });
    await prepare(bob, "addReaction", { message_id, emoji: "👍" });
    await using visit = await house().visit(ada, { path });
    const { page } = visit;
    const pill = message(page, "Look at this").getByRole("button", { name: "🎉, 2" });
    await pill.hover();
    await page.getByRole("tooltip", { name: `${bob.username} and You` }).waitFor();
    await composer(page).hover();
    await page.getByRole("tooltip").waitFor({ state: "detached" });
    await message(page, "Look at this").focus();
    await page.keyboard.press("Tab");
    while (!(await pill.evaluate((element) => element === document.activeElement))) {
      await page.keyboard.press("Tab");
    }
    await page.getByRole("tooltip").waitFor();
    // Reactions that come later are in it too.
    const carol = await house().person("carol");
    await prepare(ada, "addChatMembers", { chat_id: chat.id, usernames: [carol.username] });
    await prepare(carol, "addReaction", { message_id, emoji: "🎉" });
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

  test("is listed after a long press", async () => {
    const { ada, bob, chat, path } = await withBob();
    const { id: message_id } = await say(bob, chat, "Look at this");
    await prepare(bob, "addReaction", { message_id, emoji: "🎉" });
    await using visit = await house().visit(ada, { path, ...phone });
    const { page } = visit;
    const pill = message(page, "Look at this").getByRole("button", { name: "🎉, 1" });
    await using finger = await touching(page, pill);
    const list = page.getByRole("dialog", { name: "Who reacted" });
    await list.getByText(`@${bob.username}`).waitFor();
    await finger.lift();
    // The press has shown the list, and has not reacted.
    await list.getByRole("button", { name: "Close" }).tap();
    await list.waitFor({ state: "detached" });
    await pill.waitFor();
    expect(visit.problems()).toEqual([]);
  });
});

/** What has the focus, and whether something cuts its ring off. */
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

describe("on a touch screen", () => {
  test("a long press opens a sheet whose rows a finger can hit", async () => {
    const { ada, bob, chat, path } = await withBob();
    await say(bob, chat, "Press me");
    await using visit = await house().visit(ada, { path, ...phone });
    const { page } = visit;
    await using finger = await touching(page, message(page, "Press me").getByText("Press me"));
    const sheet = page.getByRole("dialog", { name: "Message actions" });
    await sheet.waitFor();
    await finger.lift();
    for (const button of await sheet.getByRole("button").all()) {
      const { width, height } = (await button.boundingBox()) ?? { width: 0, height: 0 };
      expect(Math.min(width, height)).toBeGreaterThanOrEqual(44);
    }
    await sheet.getByRole("button", { name: "React with 👍" }).tap();
    await message(page, "Press me").getByRole("button", { name: "👍" }).waitFor();
    await sheet.waitFor({ state: "detached" });
    expect(visit.problems()).toEqual([]);
  });

  test("a message pulled to the left is replied to, one pulled a little is not", async () => {
    const { ada, bob, chat, path } = await withBob();
    await say(bob, chat, "Pull me");
    await using visit = await house().visit(ada, { path, ...phone });
    const { page } = visit;
    const words = message(page, "Pull me").getByText("Pull me");
    for (const [distance, replies] of [
      [30, false],
      [70, true],
    ] as const) {
      await using finger = await touching(page, words);
      await finger.move(-distance / 2);
      await finger.move(-distance);
      await finger.lift();
      const banner = page.getByText("Replying to");
      if (replies) await banner.waitFor();
      else expect(await banner.count()).toBe(0);
    }
    expect(visit.problems()).toEqual([]);
  });
});

/** A finger on the middle of an element. */
async function touching(page: Page, element: Locator) {
  await element.waitFor();
  const { x = 0, y = 0, width = 0, height = 0 } = (await element.boundingBox()) ?? {};
  const session = await page.context().newCDPSession(page);
  const at = (left: number) => [{ x: x + width / 2 + left, y: y + height / 2 }];
  const send = (type: "touchStart" | "touchMove" | "touchEnd", touchPoints: object[]) =>
    session.send("Input.dispatchTouchEvent", {
      type,
      touchPoints: touchPoints as { x: number; y: number }[],
    });
  await send("touchStart", at(0));
  return {
    move: (left: number) => send("touchMove", at(left)),
    lift: () => send("touchEnd", []),
    [Symbol.asyncDispose]: () => session.detach(),
  };
}

const top = async (element: Locator) => (await element.boundingBox())?.y ?? 0;
