import { expect, test } from "bun:test";
import type { Conversation } from "@parley/protocol";
import { ChatRefresh } from "../src/catch-up/chat-refresh.ts";
import { callError } from "../src/errors.ts";
import { createStore } from "../src/model/store.ts";
import { aChat, aMessage, anEvent, ann, CHAT, chatOf, claude, items } from "./support/records.ts";

const notCalled = () => Promise.reject(new Error("not expected"));

test("unread counts are fetched once, when the server has the caller's read position", async () => {
  const snapshot = (given: Partial<Conversation>) => ({
    ...aChat({ seq: 3, last_message: aMessage({ seq: 3 }), ...given }),
    reads: {},
  });
  const store = createStore("online");
  store.dispatch({ type: "me", me: ann });
  store.dispatch({ type: "snapshots", snapshots: [snapshot({ unread_count: 3 })] });

  let fetched = 0;
  const getChat = () => {
    fetched++;
    return Promise.resolve(snapshot({ seq: 4, last_read_seq: 3, unread_count: 1 }));
  };
  const { promise: refreshed, resolve: onRefreshed } = Promise.withResolvers<string>();
  const api = { getChat, getMessage: notCalled, getUpdates: notCalled };
  const refresh = new ChatRefresh(store, api, { onRefreshed, onOtherHistory: () => undefined });
  refresh.start();
  await refresh.resume();

  store.dispatch({ type: "read", chatId: CHAT, seq: 3 });
  const onAnotherDevice = { conversation_id: CHAT, reader: ann, last_read_seq: 2 };
  store.dispatch(anEvent("events.chatRead", onAnotherDevice));
  store.dispatch({ type: "snapshots", snapshots: [snapshot({ seq: 4, unread_count: 4 })] });
  expect(fetched).toBe(0);

  store.dispatch({ type: "readSettled", chatId: CHAT, seq: 3 });
  expect(await refreshed).toBe(CHAT);
  expect(fetched).toBe(1);
  expect(chatOf(store.state).chat.unread_count).toBe(1);
});

test("a conversation that the server cannot serve holds up nothing, and is fetched later", async () => {
  const store = createStore("connecting");
  store.dispatch({ type: "me", me: ann });
  let isBroken = true;
  const getChat = async () => {
    if (isBroken) throw callError("internal", "cannot be read");
    return { ...aChat({ title: "Readable again" }), reads: {} };
  };
  const { promise: refreshed, resolve: onRefreshed } = Promise.withResolvers<string>();
  const api = { getChat, getMessage: notCalled, getUpdates: notCalled };
  const refresh = new ChatRefresh(store, api, { onRefreshed, onOtherHistory: () => undefined });
  refresh.start();
  refresh.request(CHAT);
  await refresh.resume();
  expect(store.state.chats[CHAT]).toBeUndefined();

  isBroken = false;
  expect(await refreshed).toBe(CHAT);
  expect(chatOf(store.state).chat.title).toBe("Readable again");
});

test("text of an answer that was missed while disconnected is shown without waiting for more", async () => {
  const store = createStore("connecting");
  const answer = (content: string) => aMessage({ sender: claude, content, finalized_at: null });
  store.dispatch({ type: "me", me: ann });
  const chat = (content: string) => aChat({ seq: 1, last_message: answer(content) });
  store.dispatch({ type: "snapshots", snapshots: [chat("one ")] });
  const page = { items: [answer("one ")], has_more: false };
  store.dispatch({ type: "messagePage", chatId: CHAT, page, since: 1 });
  const api = {
    getChat: async () => ({ ...chat("one two "), reads: {} }),
    getMessage: async () => answer("one two "),
    getUpdates: notCalled,
  };
  const listener = { onRefreshed: () => undefined, onOtherHistory: () => undefined };
  const refresh = new ChatRefresh(store, api, listener);
  refresh.start();
  await refresh.resume();
  expect(items(store.state).map(({ content }) => content)).toEqual(["one two "]);
});
