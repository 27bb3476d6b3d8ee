import { expect } from "bun:test";
import type { Locator, Page } from "playwright-core";
import { groupChat, message, PHONE, say, sharedHarness, test } from "./support.ts";

const harness = sharedHarness();

test("a long press opens a sheet with rows large enough for fingers", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  await say(bob, chat, "Press me");
  await using visit = await harness().visit(ada, { path, ...PHONE });
  const { page } = visit;
  await using finger = await touch(page, message(page, "Press me").getByText("Press me"));
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

test("a long press on a row of the list opens its menu, and not the conversation", async () => {
  const { ada, bob, chat } = await groupChat(harness());
  await say(bob, chat, "Press me");
  await using visit = await harness().visit(ada, PHONE);
  const { page } = visit;
  await using finger = await touch(page, page.getByRole("link", { name: /Press me/ }));
  const sheet = page.getByRole("dialog", { name: /^Menu of/ });
  await sheet.waitFor();
  await finger.lift();
  await sheet.getByRole("menuitem", { name: "Mark as read" }).tap();
  await sheet.waitFor({ state: "detached" });
  await page.getByRole("img", { name: "1 unread from people" }).waitFor({ state: "detached" });
  expect(page.url()).not.toContain(chat.id);
  expect(visit.problems()).toEqual([]);
});

test("a long swipe to the left replies to a message, a short one does not", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  await say(bob, chat, "Pull me");
  await using visit = await harness().visit(ada, { path, ...PHONE });
  const { page } = visit;
  const words = message(page, "Pull me").getByText("Pull me");
  await words.waitFor();
  // Time stands still, so that a slow swipe does not become a long press.
  await page.clock.install();
  await page.clock.pauseAt(Date.now() + 60_000);
  for (const [distance, replies] of [
    [30, false],
    [70, true],
  ] as const) {
    await using finger = await touch(page, words);
    await finger.move(-distance / 2);
    await finger.move(-distance);
    await finger.lift();
    const banner = page.getByText("Replying to");
    if (replies) await banner.waitFor();
    else expect(await banner.count()).toBe(0);
  }
  expect(visit.problems()).toEqual([]);
});

test("a long press on a reaction lists who reacted", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  const { id: message_id } = await say(bob, chat, "Look at this");
  await bob.call("addReaction", { message_id, emoji: "🎉" });
  await using visit = await harness().visit(ada, { path, ...PHONE });
  const { page } = visit;
  const pill = message(page, "Look at this").getByRole("button", { name: "🎉, 1" });
  await using finger = await touch(page, pill);
  const list = page.getByRole("dialog", { name: "Who reacted" });
  await list.getByText(`@${bob.username}`).waitFor();
  await finger.lift();
  // The long press opened the list without toggling the reaction.
  await list.getByRole("button", { name: "Close" }).tap();
  await list.waitFor({ state: "detached" });
  await pill.waitFor();
  expect(visit.problems()).toEqual([]);
});

/** Touches the middle of an element. */
async function touch(page: Page, element: Locator) {
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
