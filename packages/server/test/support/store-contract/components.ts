import { expect } from "bun:test";
import { publicAccount } from "../../../src/rules/accounts.ts";
import type { AccountRecord } from "../../../src/store/accounts.ts";
import { agentFixture } from "./agent-fixture.ts";
import { type Check, type Fixture, recordOf, START, times } from "./fixture.ts";

const at = (ms: number) => new Date(START + ms).toISOString();

export function components(check: Check) {
  async function talk(fixture: Fixture) {
    const [alice, bob] = await fixture.people("alice", "bob");
    const chat = await fixture.group(alice, bob);
    const message = await fixture.send(chat, alice, "hello");
    return { alice, bob, chat, message, ...press(fixture, message) };
  }

  const press = (fixture: Fixture, message: { id: string }) => ({
    use: (by: AccountRecord, token: string, ms = 0) =>
      fixture.store.write(async (tx) =>
        tx.useComponent(await recordOf(tx, message), { token, by, at: START + ms }),
      ),
    view: async () => {
      const [view] = await fixture.store.read((tx) => tx.messageViews([message.id], -1));
      return view;
    },
  });

  check("a use increments the counter, and shows who used what and when", async (fixture) => {
    const { alice, bob, chat, message, use, view } = await talk(fixture);
    expect(await use(bob, "trade:buy:AAPL:10", 1)).toBe(2);
    expect(await use(alice, "dismiss:x", 2)).toBe(3);
    expect(await view()).toEqual({
      ...message,
      version: 3,
      uses: [
        { token: "trade:buy:AAPL:10", by: publicAccount(bob), at: at(1) },
        { token: "dismiss:x", by: publicAccount(alice), at: at(2) },
      ],
    });
    expect((await fixture.view(chat, bob)).last_message).toEqual((await view()) ?? null);
  });

  check("each person and component is listed once, the latest use last", async (fixture) => {
    const { alice, bob, use, view } = await talk(fixture);
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

  check("the latest fifty uses are kept", async (fixture) => {
    const { bob, use, view } = await talk(fixture);
    for (const n of times(53)) await use(bob, `token ${n}`, n);
    const tokens = (await view())?.uses.map(({ token }) => token);
    expect(tokens).toEqual(times(50).map((n) => `token ${n + 3}`));
  });

  check(
    "uses of a streaming message are shown and counted once it is finalized",
    async (fixture) => {
      const { begin, finish, bob, chat } = await agentFixture(fixture);
      const { id, message } = await begin();
      const { use, view } = press(fixture, message);
      expect(await use(bob, "refresh", 1)).toBeNull();
      expect(await view()).toMatchObject({ version: message.version, uses: [] });
      expect(await finish(id)).toBe(message.seq + 1);
      const uses = [{ token: "refresh", by: publicAccount(bob), at: at(1) }];
      expect(await view()).toMatchObject({ version: message.seq + 1, uses });
      expect((await fixture.view(chat, bob)).seq).toBe(message.seq + 1);
    },
  );

  check(
    "a reply has the action that it answers, with the person's current name",
    async (fixture) => {
      const { alice, bob, chat, message } = await talk(fixture);
      const action = { token: "trade:buy:AAPL:10", label: "Buy 10", by: bob };
      const reply = await fixture.send(chat, alice, "done", { reply_to_id: message.id, action });
      expect(reply.action).toEqual({ ...action, by: publicAccount(bob) });
      const version = await fixture.store.write((tx) => tx.setDisplayName(bob.id, "Robert"));
      const [view] = await fixture.store.read((tx) => tx.messageViews([reply.id], alice.id));
      expect(view).toEqual({
        ...reply,
        action: { ...action, by: { ...publicAccount(bob), display_name: "Robert", version } },
      });
    },
  );

  check("deleting a message deletes its uses and its action", async (fixture) => {
    const { alice, bob, chat, message, use } = await talk(fixture);
    await use(bob, "a");
    const action = { token: "a", label: null, by: bob };
    const reply = await fixture.send(chat, alice, "done", { action });
    await fixture.remove(message);
    await fixture.remove(reply);
    expect(
      await fixture.store.read((tx) => tx.messageViews([message.id, reply.id], bob.id)),
    ).toEqual([]);
  });
}
