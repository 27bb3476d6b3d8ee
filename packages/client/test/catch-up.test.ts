import { expect, test } from "bun:test";
import { CatchUp, type SyncApi } from "../src/catch-up/catch-up.ts";
import { createStore } from "../src/model/store.ts";
import { aChat, ann, bob } from "./support/records.ts";

test("names that changed while disconnected are fetched page by page", async () => {
  const store = createStore("connecting");
  store.dispatch({ type: "me", me: ann });
  store.dispatch({ type: "snapshots", snapshots: [aChat()] });
  const page = { ahead: [], behind: [], new: [], gone: [], hidden: [], own_seq: 0 };
  const pages = [
    { ...page, accounts: [], accounts_seq: 1, has_more: true, history_id: "h" },
    {
      ...page,
      accounts: [{ ...bob, display_name: "Robert", version: 2 }],
      accounts_seq: 2,
      has_more: false,
      history_id: "h",
    },
  ];
  const api = {
    getChats: async () => ({ items: [aChat()], next_cursor: null }),
    getMyAgents: async () => ({ items: [] }),
    getUpdates: async () => pages.shift(),
  } as unknown as SyncApi;
  const connectivity = {
    canCall: () => true,
    whenReachable: () => Promise.resolve(),
    isConnected: () => true,
    reconnect: () => undefined,
  };
  expect(await new CatchUp(store, api, connectivity).catchUp()).toBe(true);
  expect(store.state.accounts.bob?.display_name).toBe("Robert");
  expect(store.state.accountsSeq).toBe(2);
});
