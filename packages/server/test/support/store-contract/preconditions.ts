import { expect } from "bun:test";
import type { WriteTx } from "../../../src/store/store.ts";
import { type Check, type Fixture, recordOf, remove, START } from "./fixture.ts";

export function preconditions(check: Check) {
  async function talk(fixture: Fixture) {
    const [alice, bob] = await fixture.people("alice", "bob");
    const chat = await fixture.group(alice, bob);
    const message = await fixture.send(chat, alice, "hello");
    /** What a unit throws, having changed nothing. */
    const thrownBy = async (unit: (tx: WriteTx) => unknown) => {
      const before = await fixture.view(chat, bob);
      const error = await fixture.store.write(unit).catch((caught: Error) => caught.message);
      expect(await fixture.view(chat, bob)).toEqual(before);
      return error;
    };
    return { alice, bob, chat, message, thrownBy };
  }

  check("a deleted message is neither deleted again nor edited", async (fixture) => {
    const { message, thrownBy } = await talk(fixture);
    await fixture.remove(message);
    const deleted = `message ${message.id} is deleted`;
    expect(await thrownBy((tx) => remove(tx, [message]))).toBe(deleted);
    expect(
      await thrownBy(async (tx) => tx.editMessage(await recordOf(tx, message), "again", [], START)),
    ).toBe(deleted);
  });

  check("messages of several conversations are not deleted together", async (fixture) => {
    const { alice, bob, message, thrownBy } = await talk(fixture);
    const other = await fixture.send(await fixture.group(alice, bob), alice, "elsewhere");
    expect(await thrownBy((tx) => remove(tx, [message, other]))).toBe(
      `message ${other.id} is of another conversation`,
    );
  });

  check("a reaction is added once, and removed only if it exists", async (fixture) => {
    const { alice, message, thrownBy } = await talk(fixture);
    const add = async (tx: WriteTx) =>
      tx.addReaction(await recordOf(tx, message), { reactor: alice, emoji: "👍", at: START });
    expect(
      await thrownBy(async (tx) => tx.removeReaction(await recordOf(tx, message), alice.id, "👍")),
    ).toBe(`message ${message.id} has no such reaction`);
    await fixture.store.write(add);
    expect(await thrownBy(add)).toBe(`message ${message.id} has this reaction already`);
  });

  check("setting the display name of an unknown account throws", async (fixture) => {
    const { thrownBy } = await talk(fixture);
    expect(await thrownBy((tx) => tx.setDisplayName(999, "Nobody"))).toBe("account 999 is missing");
  });

  check("empty lists read and change nothing", async (fixture) => {
    const { alice, chat, thrownBy } = await talk(fixture);
    const results = await thrownBy(async (tx) => [
      (await tx.conversation(chat.uuid, alice.id))?.id,
      await tx.accounts([]),
      await tx.participantsAmong(chat.id, []),
      await tx.messageViews([], alice.id),
      await tx.insertMembers(chat.id, [], START),
      await tx.deleteMembers(chat.id, []),
      await tx.hideMessages([], alice.id),
      await tx.dropTurns([]),
      await tx.renewLeases("here", [], 1000),
      await tx.appendChunks("here", []),
    ]);
    expect(results).toEqual([
      chat.id,
      ...[[], [], [], undefined, undefined, null, undefined, undefined, []],
    ]);
  });
}
