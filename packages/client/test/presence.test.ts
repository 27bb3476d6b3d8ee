import { expect, test } from "bun:test";
import { groupOf, people } from "@parley/testkit/client.ts";
import { FaultyProxy } from "@parley/testkit/proxy.ts";
import { startServer } from "@parley/testkit/server.ts";
import { Presences } from "../src/catch-up/presence.ts";
import type { Client } from "../src/index.ts";
import { connected } from "./support/clients.ts";

/** Watches a person until they are shown as wanted: true is online, undefined is not known. */
function untilShown(
  { presence }: Client,
  username: string,
  isOnline: boolean | undefined,
): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const check = () => {
    if (presence.peek(username)?.online === isOnline) resolve();
  };
  const stop = presence.watch(username, check);
  check();
  return promise.finally(stop);
}

test("people are watched while somebody watches them, also after a reconnect", async () => {
  await using server = await startServer();
  const [ann, bob, carol] = await people(server.url, "ann", "bob", "carol");
  await groupOf(ann, bob, carol);
  await using proxy = await FaultyProxy.to(server.url);
  using client = await connected(ann, proxy.url);
  const { presence } = client;
  const stop = presence.watch(bob.username, () => {});
  await untilShown(client, bob.username, false);
  expect(presence.peek(carol.username)).toBeUndefined();
  const socket = await bob.connect();
  await untilShown(client, bob.username, true);
  await untilShown(client, carol.username, false);

  const lost = untilShown(client, bob.username, undefined);
  proxy.refuse(true);
  proxy.cut();
  await lost;
  await socket.close();
  proxy.refuse(false);
  await untilShown(client, bob.username, false);
  await using again = await bob.connect();
  await untilShown(client, bob.username, true);
  await again.close();
  await untilShown(client, bob.username, false);
  expect(presence.peek(bob.username)?.last_seen_at).toEqual(expect.any(String));
  stop();
});

test("whoever is at the screen is so again after a reconnect", () => {
  const calls: unknown[] = [];
  const api = {
    watchPresence: async () => ({ items: [] }),
    setActivity: async (input: unknown) => {
      calls.push(input);
      return undefined;
    },
  };
  let isConnected = false;
  const presence = new Presences(api, {
    isConnected: () => isConnected,
    canCall: () => isConnected,
    whenReachable: async () => {},
    reconnect: () => {},
  });
  presence.setActive(true);
  expect(calls).toEqual([]);
  isConnected = true;
  presence.handleOpen();
  presence.setActive(true);
  presence.setActive(false);
  presence.handleOpen();
  expect(calls).toEqual([{ active: true }, { active: false }]);
});
