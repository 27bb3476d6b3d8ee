import { expect } from "bun:test";
import { answers, toolCalls } from "@parley/testkit/provider-responders.ts";
import { asksDuringCalls } from "@parley/testkit/tool-server.ts";
import type { Page } from "playwright-core";
import { expectNoViolations } from "./axe.ts";
import {
  composer,
  goBack,
  hasFocus,
  message,
  nextFrame,
  PHONE,
  sharedHarness,
  showsBriefly,
  test,
  untilFocused,
} from "./support.ts";
import { toolServer, wantsEmail } from "./tool-groups.ts";

const harness = sharedHarness();
const openGroup = toolServer();

const cards = (page: Page) => page.getByRole("main").getByRole("group", { name: /asks to use/ });
const badge = (page: Page, text: string) =>
  page.getByRole("link", { name: `Waiting for you ${text}` });

test("what waits is counted at once, listed with its question, and decided by keys alone", async () => {
  await using group = await openGroup();
  await using visit = await harness().visit(group.alice, { url: group.url, path: group.path });
  const { page } = visit;
  await composer(page).waitFor();
  expect(await page.getByText("Waiting for you").count()).toBe(0);
  group.respond(wantsEmail({ to: "ann" }, { to: "ben" }, { to: "cleo" }), answers("Two know."));
  await group.ask("tell them all");
  await badge(page, "3 decisions").waitFor();

  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: /^Search/ }).fill("waiting");
  await page.keyboard.press("Enter");
  await cards(page).getByText("cleo", { exact: true }).waitFor();
  await cards(page)
    .getByText(/tell them all»/)
    .first()
    .waitFor();
  await expectNoViolations(page);
  const card = (to: string) => cards(page).filter({ hasText: to });
  await page.keyboard.press("j");
  expect(await hasFocus(card("ben"))).toBe(true);
  const content = await page.getByRole("main").boundingBox();
  const [toast] = await Promise.all([
    page.getByText("Send email: rejected.").boundingBox(),
    page.keyboard.press("r"),
  ]);
  await badge(page, "2 decisions").waitFor();
  expect((toast?.x ?? 0) + (toast?.width ?? 0)).toBeLessThanOrEqual(content?.x ?? 0);
  expect(await hasFocus(card("cleo"))).toBe(true);
  await page.keyboard.press("k");
  expect(await hasFocus(card("ann"))).toBe(true);
  await page.clock.setFixedTime(Date.now() + 1000);
  // The pause after a decision begins with its reply.
  await showsBriefly(page.getByText("Send email: approved."), () => page.keyboard.press("a"));
  await badge(page, "1 decision").waitFor();
  // A second press at once would decide about a call that nobody has read.
  await page.keyboard.press("a");
  await page.keyboard.press("r");
  await nextFrame(page);
  expect((await group.alice.call("getPendingToolCalls")).items).toHaveLength(1);
  await page.clock.setFixedTime(Date.now() + 2000);
  await page.keyboard.press("a");
  await page.getByText("Nothing waits for you").waitFor();
  expect(await page.getByRole("link", { name: /^Waiting for you/ }).count()).toBe(0);
  await expectNoViolations(page);

  await page.getByRole("link", { name: /^Launch/ }).click();
  await message(page, "Two know.").waitFor();
  // The calls are made at the same time.
  const made = group.office.got("tools/call").map(({ message: sent }) => sent.params?.arguments);
  expect(made).toHaveLength(2);
  for (const to of ["ann", "cleo"]) expect(made).toContainEqual({ to });
  expect(visit.problems()).toEqual([]);
});

test("a decision is confirmed and the next call gets the focus, even if the event comes before the reply", async () => {
  await using group = await openGroup();
  group.respond(wantsEmail({ to: "ann" }, { to: "ben" }));
  await group.ask("tell both");
  await using visit = await harness().visit(group.alice, { url: group.url });
  const { page } = visit;
  const cardGone = Promise.withResolvers<void>();
  await page.routeWebSocket("**", (socket) => {
    const server = socket.connectToServer();
    let held = "";
    socket.onMessage((frame) => {
      const { method, id } = JSON.parse(String(frame));
      if (/decide/i.test(method)) held = `"id":${JSON.stringify(id)}}`;
      server.send(frame);
    });
    server.onMessage(async (frame) => {
      if (held !== "" && String(frame).endsWith(held)) await cardGone.promise;
      socket.send(frame);
    });
  });
  await page.goto(`${group.url}/waiting`);
  await untilFocused(cards(page).filter({ hasText: "ann" }));
  await page.keyboard.press("r");
  await badge(page, "1 decision").waitFor();
  expect(await hasFocus(cards(page))).toBe(true);
  cardGone.resolve();
  await page.getByText("Send email: rejected.").waitFor();
  expect(visit.problems()).toEqual([]);
});

test("an entry leads to its message, and goes when it is decided elsewhere", async () => {
  await using group = await openGroup();
  group.respond(wantsEmail({ to: "ann" }), answers("All right."));
  const asked = await group.ask("tell ann");
  await using visit = await harness().visit(group.alice, { url: group.url, path: "/waiting" });
  const { page } = visit;
  await untilFocused(cards(page));
  await page.keyboard.press("o");
  await message(page, "I can tell the team.").getByRole("button", { name: "Approve" }).waitFor();
  await goBack(page);
  await cards(page).first().waitFor();
  const call_id = asked.tool_calls[0]?.id ?? "";
  await group.alice.call("decideToolCall", { call_id, decision: "reject" });
  await page.getByText("Nothing waits for you").waitFor();
  expect(visit.problems()).toEqual([]);
});

test("a call that is decided elsewhere leaves the focus to the list, and says so", async () => {
  await using group = await openGroup();
  group.respond(wantsEmail({ to: "ann" }, { to: "ben" }));
  const asked = await group.ask("tell both");
  await using visit = await harness().visit(group.alice, { url: group.url, path: "/waiting" });
  const { page } = visit;
  await untilFocused(cards(page).filter({ hasText: "ann" }));
  const call_id = asked.tool_calls[0]?.id ?? "";
  await group.alice.call("decideToolCall", { call_id, decision: "reject" });
  await page.getByText("Send email no longer waits for you.").waitFor();
  await page.keyboard.press("a");
  expect(await hasFocus(page.getByRole("list", { name: "Waiting for you" }))).toBe(true);
  await page.keyboard.press("j");
  expect(await hasFocus(cards(page).filter({ hasText: "ben" }))).toBe(true);
  expect((await group.alice.call("getPendingToolCalls")).items).toHaveLength(1);
  expect(visit.problems()).toEqual([]);
});

test("the keys also work after a click beside the cards, and never while something is typed", async () => {
  await using group = await openGroup();
  group.respond(wantsEmail({ to: "ann" }, { to: "ben" }));
  await group.ask("tell both");
  await using visit = await harness().visit(group.alice, { url: group.url, path: "/waiting" });
  const { page } = visit;
  const card = (to: string) => cards(page).filter({ hasText: to });
  const leave = async () => {
    await page.getByRole("heading", { name: "Waiting for you" }).click();
    expect(await page.locator("main :focus").count()).toBe(0);
  };
  await untilFocused(card("ann"));
  await leave();
  await page.keyboard.press("j");
  expect(await hasFocus(card("ben"))).toBe(true);
  await card("ben").getByRole("button", { name: "Add a note" }).click();
  await page.keyboard.type("Rather not");
  expect(await card("ben").getByRole("textbox").inputValue()).toBe("Rather not");
  await leave();
  await page.keyboard.press("r");
  await page.getByText("Send email: rejected.").waitFor();
  await card("ben").waitFor({ state: "detached" });
  const { items } = await group.alice.call("getPendingToolCalls");
  expect(items.map(({ call }) => call.arguments)).toEqual([{ to: "ann" }]);
  expect(visit.problems()).toEqual([]);
});

test("calls of other people's agents are not listed", async () => {
  await using group = await openGroup();
  await using visit = await harness().visit(group.bob, { url: group.url, path: "/waiting" });
  group.respond(wantsEmail({ to: "ann" }));
  await group.ask("tell ann");
  await visit.page.getByRole("link", { name: /^Launch.*I can tell/ }).waitFor();
  await visit.page.getByText("Nothing waits for you").waitFor();
});

interface Shown {
  body: string;
  path: string;
}

test("a notification says what waits, and leads to the message", async () => {
  await using group = await openGroup();
  await using visit = await harness().visit(group.alice, { url: group.url });
  const { page } = visit;
  await page.evaluate(() => {
    const shown: Shown[] = [];
    class Recorded {
      static permission = "granted";
      onclick = null;
      constructor(_: string, options: { body: string; data: string }) {
        shown.push({ body: options.body, path: options.data });
      }
    }
    Object.assign(window, { Notification: Recorded, shownNotifications: shown });
    localStorage.setItem("parley.notifications", "on");
    Object.defineProperty(document, "hasFocus", { value: () => false });
    window.dispatchEvent(new Event("blur"));
  });
  await page.getByRole("link", { name: /^Launch/ }).waitFor();
  group.respond(wantsEmail({ to: "ann" }));
  const asked = await group.ask("tell ann");
  await badge(page, "1 decision").waitFor();
  const expected = { body: "Waits for you: Send email", path: `${group.path}#${asked.id}` };
  await page.waitForFunction(({ body, path }) => {
    const { shownNotifications } = window as unknown as { shownNotifications: Shown[] };
    return shownNotifications.some((shown) => shown.body === body && shown.path === path);
  }, expected);
});

test("what waits is decided on a phone", async () => {
  await using group = await openGroup();
  group.respond(wantsEmail({ to: "ann" }), answers("Sent."));
  await group.ask("tell ann");
  await using visit = await harness().visit(group.alice, { url: group.url, ...PHONE });
  const { page } = visit;
  await badge(page, "1 decision").tap();
  const toast = page.getByText("Send email: approved.");
  await showsBriefly(toast, () => cards(page).getByRole("button", { name: "Approve" }).tap());
  await page.getByText("Nothing waits for you").tap();
  await toast.waitFor({ state: "detached" });
  expect(visit.problems()).toEqual([]);
});

test("the buttons of a decision stay where they are when its question arrives", async () => {
  await using group = await openGroup();
  group.respond(wantsEmail({ to: "ann" }));
  await group.ask("tell ann, and write it so politely that she cannot refuse it at all");
  await using visit = await harness().visit(group.alice, { url: group.url, ...PHONE });
  const { page } = visit;
  const mayArrive = Promise.withResolvers<void>();
  await page.routeWebSocket("**", (socket) => {
    const server = socket.connectToServer();
    const held = new Set<unknown>();
    socket.onMessage((frame) => {
      const { method, id } = JSON.parse(String(frame));
      if (method === "getMessage") held.add(id);
      server.send(frame);
    });
    server.onMessage(async (frame) => {
      if (held.has(JSON.parse(String(frame)).id)) await mayArrive.promise;
      socket.send(frame);
    });
  });
  await page.goto(`${group.url}/waiting`);
  const approve = cards(page).getByRole("button", { name: "Approve" });
  await cards(page).getByRole("link", { name: "Launch" }).waitFor();
  const before = await approve.boundingBox();
  mayArrive.resolve();
  await cards(page)
    .getByText(/so politely/)
    .waitFor();
  expect(await approve.boundingBox()).toEqual(before);
});

test("what a tool asks is counted and listed until it is answered, also after a reload and other messages", async () => {
  await using group = await openGroup("always");
  const requestedSchema = { type: "object", properties: { seat: { type: "string" } } };
  asksDuringCalls(group.office, { message: "Which seat?", requestedSchema });
  await using visit = await harness().visit(group.alice, { url: group.url });
  const { page } = visit;
  await page.getByRole("link", { name: /^Launch/ }).waitFor();
  group.respond(toolCalls([{ name: "office__find_events", input: {} }]), answers("Booked."));
  await group.say("book it");
  await badge(page, "1 decision").waitFor();
  const chat_id = group.path.slice("/c/".length);
  for (let count = 0; count < 60; count++) {
    await group.bob.call("sendMessage", { chat_id, content: `Other matters ${count}` });
  }
  await page.reload();
  await badge(page, "1 decision").click();
  const question = page.getByRole("link", { name: "A tool of Claude asks in Launch" });
  await question.waitFor();
  await question.getByText(/waiting for you until /).waitFor();
  await question.getByText("Which seat?").waitFor();
  await expectNoViolations(page);
  await question.click();
  const asked = message(page, "Which seat?");
  await asked.getByLabel("seat").fill("window");
  await asked.getByRole("button", { name: "Submit" }).click();
  await message(page, "Booked.").waitFor();
  await page.getByRole("link", { name: /^Waiting for you/ }).waitFor({ state: "detached" });
  expect(visit.problems()).toEqual([]);
});
