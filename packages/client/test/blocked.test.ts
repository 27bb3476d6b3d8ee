import { expect, test } from "bun:test";
import { people } from "@parley/testkit/client.ts";
import { sharedServer } from "@parley/testkit/shared-server.ts";
import { createStore } from "../src/model/store.ts";
import { connected, memoryStorage, online, until } from "./support/clients.ts";

const server = await sharedServer();
test("the block list follows changes on other devices, live and after an absence", async () => {
  const [alice, bob, carol] = await people(server.url, "alice", "bob", "carol");
  await alice.call("blockUser", { username: carol.username });
  using client = await connected(alice, server.url);
  const blocked = () => client.model.get("blocked");
  expect(blocked()).toEqual([carol.username]);
  await alice.call("blockUser", { username: bob.username });
  await until(client, "blocked", () => blocked().length === 2);
  client.close();
  await alice.call("unblockUser", { username: carol.username });
  await client.connect();
  await online(client);
  expect(blocked()).toEqual([bob.username]);
});

test("the block list is known before there is a connection", async () => {
  const [alice, bob] = await people(server.url, "alice", "bob");
  const storage = memoryStorage();
  const client = await connected(alice, server.url, { storage });
  await client.blockUser({ username: bob.username });
  await until(client, "blocked", () => client.model.get("blocked").length === 1);
  client.close();
  const { createClient } = await import("../src/index.ts");
  const restored = createClient({ url: server.url, token: alice.token, storage });
  expect(restored.model.get("blocked")).toEqual([bob.username]);
});

test("an older block list does not replace a newer one", () => {
  const store = createStore("online");
  const event = (own_seq: number, ...usernames: string[]) =>
    store.dispatch({
      type: "event",
      frame: { method: "events.blocksUpdated", params: { usernames }, own_seq },
    });
  event(2, "bob", "carol");
  event(1, "bob");
  expect(store.get("blocked")).toEqual(["bob", "carol"]);
  store.dispatch({ type: "overview", page: { blocked: { usernames: [], own_seq: 3 } } });
  event(2, "bob", "carol");
  expect(store.get("blocked")).toEqual([]);
});
