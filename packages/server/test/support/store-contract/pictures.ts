import { expect } from "bun:test";
import type { AccountRecord } from "../../../src/store/accounts.ts";
import { type Chat, type Check, conversationOf, type Fixture, START } from "./fixture.ts";

const setChatPicture = ({ store }: Fixture, chat: Chat, file: string | null) =>
  store.write(async (tx) => {
    await conversationOf(tx, chat);
    return tx.setChatPicture(chat.id, file, START);
  });

export function pictures(check: Check) {
  const announce = async (
    { store }: Fixture,
    owner: AccountRecord,
    conversation_id: number | null = null,
  ) => {
    const id = Bun.randomUUIDv7();
    const file = { id, owner_id: owner.id, conversation_id, name: "me.png", size: 5, at: START };
    await store.write((tx) =>
      tx.insertFile(file, { person_id: file.owner_id, day: "2026-11-15", bytes: 5 }),
    );
    return id;
  };

  /** A file whose bytes have arrived. */
  const upload = async (fixture: Fixture, owner: AccountRecord, conversationId?: number) => {
    const id = await announce(fixture, owner, conversationId);
    const blob = Bun.randomUUIDv7();
    const size = { size: 5, width: 1, height: 1, duration_ms: null };
    const content = { ...size, blob, type: "image/webp", placeholder: "data:" };
    await fixture.store.write((tx) => tx.finishFile(id, content));
    return { id, blob };
  };

  const setAvatar = ({ store }: Fixture, { id }: AccountRecord, file: string | null) =>
    store.write((tx) => tx.setAvatar(id, file, START));
  const avatars = ({ store }: Fixture, ...people: AccountRecord[]) =>
    store.read((tx) => tx.avatars(people.map(({ id }) => id)));
  const abandoned = ({ store }: Fixture) => store.read((tx) => tx.abandonedBlobs(10));
  const record = async ({ store }: Fixture, id: string) =>
    (await store.read((tx) => tx.files([id])))[0];

  check("an account has one picture, and the former one is deleted", async (fixture) => {
    const [alice, bob] = await fixture.people("alice", "bob");
    const [first, second] = [await upload(fixture, alice), await upload(fixture, alice)];
    expect(await record(fixture, first.id)).toMatchObject({ conversation_uuid: null, used: false });
    expect(await setAvatar(fixture, alice, first.id)).toEqual({ ...alice, version: 1 });
    expect(await avatars(fixture, alice, bob)).toEqual([
      { account_id: alice.id, file_id: first.id },
    ]);
    expect(await record(fixture, first.id)).toMatchObject({ conversation_uuid: null, used: true });
    expect(await setAvatar(fixture, alice, second.id)).toEqual({ ...alice, version: 2 });
    expect(await record(fixture, first.id)).toBeUndefined();
    expect(await abandoned(fixture)).toEqual([first.blob]);
    expect(await setAvatar(fixture, alice, null)).toEqual({ ...alice, version: 3 });
    expect(await avatars(fixture, alice)).toEqual([]);
    expect((await abandoned(fixture)).sort()).toEqual([first.blob, second.blob].sort());
  });

  check("those who were away learn of a new picture", async (fixture) => {
    const [alice, bob] = await fixture.people("alice", "bob");
    await fixture.group(alice, bob);
    await setAvatar(fixture, alice, (await upload(fixture, alice)).id);
    const { accounts, seq } = await fixture.store.read((tx) => tx.renamedSince(bob.id, 0));
    expect(accounts).toMatchObject([{ username: "alice", version: 1 }]);
    expect(seq).toBe(1);
  });

  check("a group has one picture, and the former one is deleted", async (fixture) => {
    const [alice, bob] = await fixture.people("alice", "bob");
    const chat = await fixture.group(alice, bob);
    const set = (file: string | null) => setChatPicture(fixture, chat, file);
    const [first, second] = [await upload(fixture, alice), await upload(fixture, bob)];
    expect(await set(first.id)).toBe(true);
    expect((await fixture.view(chat, bob)).picture_id).toBe(first.id);
    expect(await record(fixture, first.id)).toMatchObject({
      conversation_uuid: chat.uuid,
      used: true,
    });
    expect(await set(second.id)).toBe(true);
    expect(await record(fixture, first.id)).toBeUndefined();
    expect(await abandoned(fixture)).toEqual([first.blob]);
    expect(await set(null)).toBe(true);
    expect((await fixture.view(chat, bob)).picture_id).toBeNull();
    expect((await abandoned(fixture)).sort()).toEqual([first.blob, second.blob].sort());
  });

  check(
    "files that are gone, not ready, used or of a conversation are refused",
    async (fixture) => {
      const [alice] = await fixture.people("alice");
      const chat = await fixture.group(alice);
      const used = await upload(fixture, alice);
      await setAvatar(fixture, alice, used.id);
      const refused = [
        Bun.randomUUIDv7(),
        await announce(fixture, alice),
        used.id,
        (await upload(fixture, alice, chat.id)).id,
      ];
      for (const id of refused) {
        expect(await setAvatar(fixture, alice, id)).toBeNull();
        expect(await setChatPicture(fixture, chat, id)).toBe(false);
      }
      expect(await avatars(fixture, alice)).toEqual([{ account_id: alice.id, file_id: used.id }]);
      expect(await abandoned(fixture)).toEqual([]);
    },
  );

  check("one of two units that use the same picture is refused", async (fixture) => {
    const [alice, bob] = await fixture.people("alice", "bob");
    const { id } = await upload(fixture, alice);
    const set = await Promise.all([alice, bob].map((person) => setAvatar(fixture, person, id)));
    expect(set.filter((changed) => changed === null)).toHaveLength(1);
  });
}
