import { expect } from "bun:test";
import type { AccountRecord } from "../../../src/store/accounts.ts";
import { desk } from "./desk.ts";
import { type Check, recordOf, START, shown, times, type World } from "./world.ts";

const at = (ms: number) => new Date(START + ms).toISOString();

export function components(check: Check) {
  async function talk(world: World) {
    const [alice, bob] = await world.people("alice", "bob");
    const room = await world.group(alice, bob);
    const message = await world.send(room, alice, "hello");
    return { alice, bob, room, message, ...press(world, message) };
  }

  const press = (world: World, message: { id: string }) => ({
    use: (by: AccountRecord, token: string, ms = 0) =>
      world.store.write(async (tx) =>
        tx.useComponent(await recordOf(tx, message), { token, by, at: START + ms }),
      ),
    view: async () => {
      const [view] = await world.store.read((tx) => tx.messageViews([message.id], -1));
      return view;
    },
  });

  check("a use takes the counter one up, and shows who used what and when", async (world) => {
    const { alice, bob, room, message, use, view } = await talk(world);
    expect(await use(bob, "trade:buy:AAPL:10", 1)).toBe(2);
    expect(await use(alice, "dismiss:x", 2)).toBe(3);
    expect(await view()).toEqual({
      ...message,
      version: 3,
      uses: [
        { token: "trade:buy:AAPL:10", by: shown(bob), at: at(1) },
        { token: "dismiss:x", by: shown(alice), at: at(2) },
      ],
    });
    expect((await world.view(room, bob)).last_message).toEqual((await view()) ?? null);
  });

  check("each person and component stands once, the latest use last", async (world) => {
    const { alice, bob, use, view } = await talk(world);
    await use(bob, "a", 1);
    await use(alice, "a", 2);
    await use(bob, "b", 3);
    expect(await use(bob, "a", 4)).toBe(5);
    const uses = (await view())?.uses.map(({ token, by, at: when }) => [token, by.username, when]);
    expect(uses).toEqual([
      ["a", alice.username, at(2)],
      ["b", bob.username, at(3)],
      ["a", bob.username, at(4)],
    ]);
  });

  check("the latest fifty are kept", async (world) => {
    const { bob, use, view } = await talk(world);
    for (const n of times(53)) await use(bob, `token ${n}`, n);
    const tokens = (await view())?.uses.map(({ token }) => token);
    expect(tokens).toEqual(times(50).map((n) => `token ${n + 3}`));
  });

  check("those of a message that streams are shown, and counted, with its end", async (world) => {
    const { begin, finish, bob, room } = await desk(world);
    const { id, message } = await begin();
    const { use, view } = press(world, message);
    expect(await use(bob, "refresh", 1)).toBeNull();
    expect(await view()).toMatchObject({ version: message.version, uses: [] });
    expect(await finish(id)).toBe(message.seq + 1);
    const uses = [{ token: "refresh", by: shown(bob), at: at(1) }];
    expect(await view()).toMatchObject({ version: message.seq + 1, uses });
    expect((await world.view(room, bob)).seq).toBe(message.seq + 1);
  });

  check("a reply holds which action it answers, under the person's latest name", async (world) => {
    const { alice, bob, room, message } = await talk(world);
    const action = { token: "trade:buy:AAPL:10", label: "Buy 10", by: bob };
    const reply = await world.send(room, alice, "done", { reply_to_id: message.id, action });
    expect(reply.action).toEqual({ ...action, by: shown(bob) });
    const version = await world.store.write((tx) => tx.setDisplayName(bob.id, "Robert"));
    const [view] = await world.store.read((tx) => tx.messageViews([reply.id], alice.id));
    expect(view).toEqual({
      ...reply,
      action: { ...action, by: { ...shown(bob), display_name: "Robert", version } },
    });
  });

  check("both go with their message", async (world) => {
    const { alice, bob, room, message, use } = await talk(world);
    await use(bob, "a");
    const action = { token: "a", label: null, by: bob };
    const reply = await world.send(room, alice, "done", { action });
    await world.remove(message);
    await world.remove(reply);
    expect(await world.store.read((tx) => tx.messageViews([message.id, reply.id], bob.id))).toEqual(
      [],
    );
  });
}
