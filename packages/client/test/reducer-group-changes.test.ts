import { describe, expect, test } from "bun:test";
import { initialState, type State } from "../src/model/state.ts";
import {
  aChange,
  aChat,
  aMessage,
  anEvent,
  ann,
  annsState,
  bob,
  CHAT,
  chatOf,
  run,
  updates,
} from "./support/records.ts";

describe("changes of the group", () => {
  const changes = (state: State) => chatOf(state).window?.changes.map(({ seq }) => seq);
  const updated = (seq: number) =>
    anEvent("events.conversationUpdated", { ...aChat({ seq }), changes: [aChange(seq)] }, seq);
  const page = (seq: number, ...places: number[]) => {
    const { page: found, ...rest } = updates(seq, []);
    return { ...rest, page: { ...found, changes: places.map((place) => aChange(place)) } };
  };

  test("come from events, updates and history pages, each once and in order", () => {
    const fromEvents = run(annsState(2), updated(3), updated(4));
    expect(changes(fromEvents)).toEqual([3, 4]);
    expect(changes(run(fromEvents, page(5, 3, 4, 5)))).toEqual([3, 4, 5]);
    expect(changes(run(annsState(2), page(4, 3, 4), updated(4)))).toEqual([3, 4]);
    const opened = run(
      initialState("online"),
      { type: "me", me: ann },
      { type: "snapshots", snapshots: [aChat({ seq: 5 })] },
      {
        type: "messagePage",
        chatId: CHAT,
        page: { items: [aMessage({ seq: 4 })], has_more: true, changes: [aChange(5)] },
        since: 5,
      },
      {
        type: "messagePage",
        chatId: CHAT,
        page: {
          items: [aMessage({ seq: 1 })],
          has_more: false,
          changes: [2, 3].map((n) => aChange(n)),
        },
        since: 5,
        before: "m4",
      },
    );
    expect(changes(opened)).toEqual([2, 3, 5]);
  });

  test("of aside join those of the window", () => {
    const aside = (items: number[], places: number[], has_more: boolean) => ({
      items: items.map((seq) => aMessage({ seq })),
      has_more,
      changes: places.map((place) => aChange(place)),
    });
    const state = run(
      initialState("online"),
      { type: "me", me: ann },
      { type: "snapshots", snapshots: [aChat({ seq: 9 })] },
      { type: "messagePage", chatId: CHAT, page: aside([8], [9], true), since: 9 },
      { type: "aside", chatId: CHAT, page: aside([2, 4], [3, 5], true), since: 9 },
    );
    // A change after the last message of the page comes with the next page.
    expect(chatOf(state).aside?.changes.map(({ seq }) => seq)).toEqual([3]);
    const joined = run(state, {
      type: "aside",
      chatId: CHAT,
      page: aside([6, 8], [5, 7, 9], false),
      since: 9,
      from: { id: "m4", direction: "newer" },
    });
    expect(chatOf(joined).aside).toBeNull();
    expect(changes(joined)).toEqual([3, 5, 7, 9]);
  });

  test("are empty if an older server sends none", () => {
    const { changes: _, ...shared } = { ...aChat({ seq: 3 }), changes: [] };
    const old = anEvent("events.conversationUpdated", shared as never, 3);
    expect(changes(run(annsState(2), old))).toEqual([]);
  });

  test("show the newest names", () => {
    const robert = { ...bob, display_name: "Robert", version: 1 };
    const state = run(annsState(2), updated(3), anEvent("events.accountUpdated", robert));
    expect(chatOf(state).window?.changes[0]?.actor).toEqual(robert);
  });
});
