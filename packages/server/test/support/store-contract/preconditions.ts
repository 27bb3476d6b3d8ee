import { expect } from "bun:test";
import type { WriteTx } from "../../../src/store/store.ts";
import { type Check, recordOf, remove, START, type World } from "./world.ts";

export function preconditions(check: Check) {
  async function talk(world: World) {
    const [alice, bob] = await world.people("alice", "bob");
    const room = await world.group(alice, bob);
    const message = await world.send(room, alice, "hello");
    /** What a unit throws, having changed nothing. */
    const thrownBy = async (unit: (tx: WriteTx) => unknown) => {
      const before = await world.view(room, bob);
      const error = await world.store.write(unit).catch((caught: Error) => caught.message);
      expect(await world.view(room, bob)).toEqual(before);
      return error;
    };
    return { alice, bob, room, message, thrownBy };
  }

  check("a deleted message is neither deleted again nor edited", async (world) => {
    const { message, thrownBy } = await talk(world);
    await world.remove(message);
    const deleted = `message ${message.id} is deleted`;
    expect(await thrownBy((tx) => remove(tx, [message]))).toBe(deleted);
    expect(
      await thrownBy(async (tx) => tx.editMessage(await recordOf(tx, message), "again", [], START)),
    ).toBe(deleted);
  });

  check("messages of several conversations are not deleted together", async (world) => {
    const { alice, bob, message, thrownBy } = await talk(world);
    const other = await world.send(await world.group(alice, bob), alice, "elsewhere");
    expect(await thrownBy((tx) => remove(tx, [message, other]))).toBe(
      `message ${other.id} is of another conversation`,
    );
  });

  check("a reaction is added once, and removed only if it exists", async (world) => {
    const { alice, message, thrownBy } = await talk(world);
    const add = async (tx: WriteTx) =>
      tx.addReaction(await recordOf(tx, message), { reactor: alice, emoji: "👍", at: START });
    expect(
      await thrownBy(async (tx) => tx.removeReaction(await recordOf(tx, message), alice.id, "👍")),
    ).toBe(`message ${message.id} has no such reaction`);
    await world.store.write(add);
    expect(await thrownBy(add)).toBe(`message ${message.id} has this reaction already`);
  });

  check("an unknown account gets no display name", async (world) => {
    const { thrownBy } = await talk(world);
    expect(await thrownBy((tx) => tx.setDisplayName(999, "Nobody"))).toBe("account 999 is missing");
  });

  check("empty lists read and change nothing", async (world) => {
    const { alice, room, thrownBy } = await talk(world);
    const results = await thrownBy(async (tx) => [
      await tx.accounts([]),
      await tx.participantsAmong(room.id, []),
      await tx.messageViews([], alice.id),
      await tx.insertMembers(room.id, [], START),
      await tx.deleteMembers(room.id, []),
      await tx.hideMessages([], alice.id),
      await tx.dropTurns([]),
      await tx.renewLeases("here", [], 1000),
      await tx.appendChunks("here", []),
    ]);
    expect(results).toEqual([[], [], [], undefined, undefined, null, undefined, undefined, []]);
  });
}
