import { expect } from "bun:test";
import {
  at,
  type Check,
  inTurn,
  newAgent,
  placesHeard,
  recordOf,
  START,
  shown,
  tellEnd,
  times,
  trySend,
  type World,
} from "./world.ts";

export function messages(check: Check) {
  async function pair(world: World) {
    const [alice, bob] = await world.people("alice", "bob");
    return { alice, bob, room: await world.group(alice, bob) };
  }

  check("a message is returned as it is read later", async (world) => {
    const { alice, bob, room } = await pair(world);
    const first = await world.send(room, bob, "first");
    const sent = await world.send(room, alice, "Grüße\n👍 @bob", {
      client_msg_id: "mine",
      reply_to_id: first.id,
      mentions: ["bob"],
      at: START + 5,
    });
    expect(sent).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/),
      conversation_id: room.uuid,
      seq: 2,
      version: 2,
      sender: shown(alice),
      content: "Grüße\n👍 @bob",
      client_msg_id: "mine",
      reply_to_id: first.id,
      created_at: new Date(START + 5).toISOString(),
      edited_at: null,
      finalized_at: new Date(START + 5).toISOString(),
      reactions: [],
      mentions: ["bob"],
      turn: null,
      action: null,
      uses: [],
    });
    const views = await world.store.read((tx) => tx.messageViews([sent.id], bob.id));
    expect(views).toEqual([sent]);
    expect((await world.view(room, bob)).last_message).toEqual(sent);
  });

  check("its record is for the server's own use", async (world) => {
    const { alice, room } = await pair(world);
    const agent = await world.store.write((tx) => newAgent(tx, alice, "claude"));
    const sent = await world.send(room, agent, "hello", { mentions: ["alice"] });
    expect(await world.store.read((tx) => recordOf(tx, sent))).toEqual({
      id: expect.any(Number),
      uuid: sent.id,
      conversation_id: room.id,
      conversation_uuid: room.uuid,
      seq: 1,
      sender_id: agent.id,
      sender_owner_id: alice.id,
      sender_kind: "agent",
      mentions: ["alice"],
      finalized: true,
      deleted: false,
    });
    expect(await world.store.read((tx) => tx.message(Bun.randomUUIDv7()))).toBeNull();
  });

  check(
    "several are shown in the order asked for, without those that do not exist",
    async (world) => {
      const { alice, room } = await pair(world);
      const sent = await inTurn(times(12), (n) => world.send(room, alice, `${n}`));
      const asked = [11, 3, 7, 0, 10].map((n) => at(sent, n).id);
      const shown = await world.store.read((tx) =>
        tx.messageViews([...asked, Bun.randomUUIDv7()], alice.id),
      );
      expect(shown.map(({ id }) => id)).toEqual(asked);
    },
  );

  check(
    "one client_msg_id makes one message, and a second changes nothing at all",
    async (world) => {
      const { alice, bob, room } = await pair(world);
      const first = await world.send(room, alice, "first", { client_msg_id: "same" });
      await world.send(room, bob, "between");
      const before = await Promise.all([world.view(room, alice), world.view(room, bob)]);
      const again = await world.store.write((tx) =>
        trySend(tx, room, alice, "second", { client_msg_id: "same", mentions: ["bob"] }),
      );
      expect(again).toBeNull();
      expect(await Promise.all([world.view(room, alice), world.view(room, bob)])).toEqual(before);
      const earlier = await world.store.read((tx) => tx.sentBefore(room.id, alice.id, "same"));
      expect(earlier).toBe(first.id);
    },
  );

  check(
    "the same client_msg_id is another's in another conversation or from another sender",
    async (world) => {
      const { alice, bob, room } = await pair(world);
      const other = await world.group(alice, bob);
      const options = { client_msg_id: "same" };
      const ids = [
        await world.send(room, alice, "1", options),
        await world.send(room, bob, "2", options),
        await world.send(other, alice, "3", options),
      ].map(({ id }) => id);
      expect(new Set(ids).size).toBe(3);
      const sentBefore = (id: string) =>
        world.store.read((tx) => tx.sentBefore(room.id, bob.id, id));
      expect(await sentBefore("same")).toBe(at(ids, 1));
      expect(await sentBefore("other")).toBeNull();
    },
  );

  check("messages without a client_msg_id are never taken for each other", async (world) => {
    const { alice, room } = await pair(world);
    for (const _ of times(3)) await world.send(room, alice, "same");
    expect(await world.texts(room, alice)).toEqual(["same", "same", "same"]);
  });

  check(
    "one client_msg_id sent many times at once makes and announces one message",
    async (world) => {
      const { alice, room } = await pair(world);
      const sent = await Promise.all(
        times(50).map((n) =>
          world.store.write((tx) => trySend(tx, room, alice, `${n}`, { client_msg_id: "same" })),
        ),
      );
      expect(sent.filter((message) => message !== null)).toHaveLength(1);
      expect((await world.view(room, alice)).seq).toBe(1);
      await world.store.write((tx) => tellEnd(tx, "all"));
      await world.heard("all");
      expect(placesHeard(world.announced, room)).toEqual([1]);
    },
  );

  check("a client_msg_id stays used after its message is deleted", async (world) => {
    const { alice, room } = await pair(world);
    const first = await world.send(room, alice, "first", { client_msg_id: "same" });
    await world.remove(first);
    expect(
      await world.store.write((tx) =>
        trySend(tx, room, alice, "second", { client_msg_id: "same" }),
      ),
    ).toBeNull();
    const earlier = await world.store.read((tx) => tx.sentBefore(room.id, alice.id, "same"));
    expect(earlier).toBe(first.id);
  });

  check("an edit changes text and mentions, and keeps the place", async (world) => {
    const { alice, bob, room } = await pair(world);
    const first = await world.send(room, alice, "first", { mentions: ["alice"] });
    await world.send(room, bob, "second");
    const version = await world.store.write(async (tx) =>
      tx.editMessage(await recordOf(tx, first), "changed", ["bob"], START + 9),
    );
    expect(version).toBe(3);
    const [view] = await world.store.read((tx) => tx.messageViews([first.id], bob.id));
    expect(view).toEqual({
      ...first,
      version: 3,
      content: "changed",
      mentions: ["bob"],
      edited_at: new Date(START + 9).toISOString(),
    });
    expect(await world.texts(room, bob)).toEqual(["changed", "second"]);
  });
}
