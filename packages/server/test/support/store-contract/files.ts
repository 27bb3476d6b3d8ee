import { expect } from "bun:test";
import type { Message } from "@parley/protocol";
import { publicFile } from "../../../src/rules/files.ts";
import type { AccountRecord } from "../../../src/store/accounts.ts";
import { FIRST_FILE, type FileContent } from "../../../src/store/files.ts";
import type { WriteTx } from "../../../src/store/store.ts";
import {
  type Chat,
  type Check,
  type Fixture,
  failed,
  recordOf,
  START,
  send,
  times,
} from "./fixture.ts";

const DAY = "2026-11-15";

const content = (blob: string): FileContent => ({
  blob,
  type: "image/png",
  size: 7,
  width: 2,
  height: 3,
  duration_ms: null,
  placeholder: "data:,",
});

/** Announces a file, and stores its bytes unless it should wait for them. */
async function newFile(
  tx: WriteTx,
  owner: AccountRecord,
  chat: Chat,
  { at = START, waits = false } = {},
) {
  const [id, blob] = [Bun.randomUUIDv7(), Bun.randomUUIDv7()];
  const file = { id, owner_id: owner.id, conversation_id: chat.id, name: "ä.png", size: 5, at };
  await tx.insertFile(file, { person_id: file.owner_id, day: DAY, bytes: 8 });
  if (!waits) expect(await tx.finishFile(id, content(blob))).toBe(true);
  return { id, blob };
}

/** Sends a message with files. The unit fails if one of them cannot be attached. */
async function sendFiles(tx: WriteTx, chat: Chat, sender: AccountRecord, ids: readonly string[]) {
  const files = (await tx.files(ids)).map(publicFile);
  const message = await send(tx, chat, sender, "", { files });
  if (!(await tx.attachFiles(ids, message.id, START))) throw new Error("a file is gone");
  return message;
}

const file = async ({ store }: Fixture, id: string) =>
  (await store.read((tx) => tx.files([id])))[0];
const abandoned = async ({ store }: Fixture) =>
  (await store.read((tx) => tx.abandonedBlobs(100))).sort();

async function place(fixture: Fixture) {
  const [ada, bob] = await fixture.people("ada", "bob");
  return { ada, bob, chat: await fixture.group(ada, bob) };
}

export function files(check: Check) {
  uploads(check);
  listing(check);
  deletions(check);
  races(check);
}

function uploads(check: Check) {
  check("a file waits for its bytes, and gets them once", async (fixture) => {
    const { store } = fixture;
    const { ada, chat } = await place(fixture);
    const { id } = await store.write((tx) => newFile(tx, ada, chat, { waits: true }));
    const announced = {
      id,
      owner_id: ada.id,
      owner_state: "active",
      conversation_uuid: chat.uuid,
      blob: null,
      name: "ä.png",
      type: "application/octet-stream",
      size: 5,
      width: null,
      height: null,
      duration_ms: null,
      status: "waiting",
      placeholder: null,
      used: false,
      created_at: START,
    } as const;
    expect(await file(fixture, id)).toMatchObject(announced);
    await store.write((tx) => tx.failFile(id));
    expect(await file(fixture, id)).toMatchObject({ ...announced, status: "failed" });
    const [first, second] = [Bun.randomUUIDv7(), Bun.randomUUIDv7()];
    const finish = (blob: string) => store.write((tx) => tx.finishFile(id, content(blob)));
    expect(await finish(first)).toBe(true);
    expect(await finish(second)).toBe(false);
    await store.write((tx) => tx.failFile(id));
    const ready = { ...announced, ...content(first), status: "ready" } as const;
    expect(await file(fixture, id)).toMatchObject(ready);
    const blobs = [second, first];
    expect(await store.read((tx) => tx.usedBlobs(blobs))).toEqual([first]);
    const unknown = Bun.randomUUIDv7();
    expect(await store.write((tx) => tx.finishFile(unknown, content(second)))).toBe(false);
  });

  check(
    "what the files of a person count is added up by day, whatever their size",
    async (fixture) => {
      const { store } = fixture;
      const { ada, bob, chat } = await place(fixture);
      const bytes = (person: AccountRecord, day: string) =>
        store.read((tx) => tx.uploadedBytes(person.id, day));
      for (const _ of times(2)) await store.write((tx) => newFile(tx, ada, chat, { waits: true }));
      expect(await bytes(ada, DAY)).toBe(16);
      expect(await bytes(ada, "2026-11-16")).toBe(0);
      expect(await bytes(bob, DAY)).toBe(0);
      expect(await store.read((tx) => tx.announcedBytes())).toBe(10);
    },
  );

  check("the state of the owner is part of a file", async (fixture) => {
    const { store } = fixture;
    const { ada, chat } = await place(fixture);
    const { id } = await store.write((tx) => newFile(tx, ada, chat));
    await store.write((tx) => tx.setSuspended(ada.id, START));
    expect((await file(fixture, id))?.owner_state).toBe("suspended");
  });

  check("files of a person, and all with bytes, are read in pages", async (fixture) => {
    const { store } = fixture;
    const { ada, bob, chat } = await place(fixture);
    const own: string[] = [];
    for (const _ of times(3)) own.push((await store.write((tx) => newFile(tx, ada, chat))).id);
    await store.write((tx) => newFile(tx, ada, chat, { waits: true }));
    const other = await store.write((tx) => newFile(tx, bob, chat));
    await store.read(async (tx) => {
      const ids = async (after: string) => (await tx.filesOf(ada.id, after, 2)).map(({ id }) => id);
      expect(await ids(FIRST_FILE)).toEqual(own.slice(0, 2));
      expect(await ids(own[1] ?? "")).toEqual(own.slice(2));
      const stored = await tx.storedFiles(own[2] ?? "", 5);
      expect(stored).toEqual([{ ...other, status: "ready", message_uuid: null }]);
      expect(await tx.storedFiles(FIRST_FILE, 5)).toHaveLength(4);
    });
  });

  check("a file whose bytes are missing is failed until they are found", async (fixture) => {
    const { store } = fixture;
    const { ada, chat } = await place(fixture);
    const stored = await store.write((tx) => newFile(tx, ada, chat));
    const status = async () => (await file(fixture, stored.id))?.status;
    const setFound = (blob: string, isFound: boolean) =>
      store.write((tx) => tx.setBlobFound({ id: stored.id, blob, message_uuid: null }, isFound));
    expect(await setFound(stored.blob, false)).toBe(true);
    expect(await status()).toBe("failed");
    expect(await store.read((tx) => tx.storedFiles(FIRST_FILE, 5))).toEqual([
      { ...stored, status: "failed", message_uuid: null },
    ]);
    expect(await setFound(Bun.randomUUIDv7(), true)).toBe(false);
    expect(await status()).toBe("failed");
    await setFound(stored.blob, true);
    expect(await status()).toBe("ready");
    // A message has it by now, which has to show the new status too.
    const message = await store.write((tx) => sendFiles(tx, chat, ada, [stored.id]));
    expect(await setFound(stored.blob, false)).toBe(false);
    expect(await status()).toBe("ready");
    expect(await store.read((tx) => tx.storedFiles(FIRST_FILE, 5))).toEqual([
      { ...stored, status: "ready", message_uuid: message.id },
    ]);
  });

  check("the files that a message shows change with the counter", async (fixture) => {
    const { store } = fixture;
    const { ada, bob, chat } = await place(fixture);
    const { id } = await store.write((tx) => newFile(tx, ada, chat));
    const message = await store.write((tx) => sendFiles(tx, chat, ada, [id]));
    const files = message.files.map((each) => ({ ...each, status: "failed" as const }));
    const change = () =>
      store.write(async (tx) => tx.setMessageFiles(await recordOf(tx, message), files));
    const version = message.seq + 1;
    expect(await change()).toBe(version);
    const [shown] = await store.read((tx) => tx.messageViews([message.id], bob.id));
    expect(shown).toEqual({ ...message, files, version });
    expect((await fixture.view(chat, bob))?.seq).toBe(version);
    await fixture.remove(message);
    expect(await failed(change())).toBe(true);
  });
}

function listing(check: Check) {
  check(
    "the files of a conversation are those of messages that a viewer can see",
    async (fixture) => {
      const { store } = fixture;
      const { ada, bob, chat } = await place(fixture);
      const sendNew = (count: number) =>
        store.write(async (tx) => {
          const ids: string[] = [];
          for (const _ of times(count)) ids.push((await newFile(tx, ada, chat)).id);
          return sendFiles(tx, chat, ada, ids);
        });
      const oldest = await sendNew(1);
      await store.write((tx) => send(tx, chat, bob, "no file"));
      const several = await sendNew(2);
      const hidden = await sendNew(1);
      const deleted = await sendNew(1);
      await store.write(async (tx) => tx.hideMessages([await recordOf(tx, hidden)], bob.id));
      await fixture.remove(deleted);
      const other = await fixture.group(ada, bob);
      await store.write(async (tx) =>
        sendFiles(tx, other, ada, [(await newFile(tx, ada, other)).id]),
      );
      const listed = async (viewer: AccountRecord, { after = 0, upTo = 100, limit = 10 } = {}) =>
        store.read((tx) =>
          tx.messagesWithFiles({
            conversationId: chat.id,
            viewerId: viewer.id,
            after,
            upTo,
            limit,
          }),
        );
      const asListed = (message: Message) => ({
        message_id: message.id,
        seq: message.seq,
        sender: message.sender,
        sent_at: message.created_at,
        files: message.files,
      });
      expect(await listed(bob)).toEqual([several, oldest].map(asListed));
      expect(await listed(ada)).toEqual([hidden, several, oldest].map(asListed));
      expect(await listed(ada, { limit: 2 })).toEqual([hidden, several].map(asListed));
      expect(await listed(ada, { upTo: several.seq })).toEqual([several, oldest].map(asListed));
      expect(await listed(ada, { after: several.seq })).toEqual([hidden].map(asListed));
    },
  );
}

function deletions(check: Check) {
  check("a message gets files that are ready, and each file once", async (fixture) => {
    const { store } = fixture;
    const { ada, bob, chat } = await place(fixture);
    const one = await store.write((tx) => newFile(tx, ada, chat));
    const other = await store.write((tx) => newFile(tx, ada, chat));
    const waiting = await store.write((tx) => newFile(tx, ada, chat, { waits: true }));
    const attach = (...ids: string[]) => store.write((tx) => sendFiles(tx, chat, ada, ids));
    expect(await failed(attach(one.id, waiting.id))).toBe(true);
    expect((await file(fixture, one.id))?.used).toBe(false);
    const message = await attach(one.id, other.id);
    expect(message.files.map(({ id }) => id).sort()).toEqual([one.id, other.id].sort());
    expect(await failed(attach(one.id))).toBe(true);
    const [shown] = await store.read((tx) => tx.messageViews([message.id], bob.id));
    expect(shown?.files).toEqual(message.files);
    expect(await store.write((tx) => tx.deleteUnusedFiles([one.id]))).toBe(0);
    expect(await abandoned(fixture)).toEqual([]);
  });

  check("deleting a message deletes its files and abandons their blobs", async (fixture) => {
    const { store } = fixture;
    const { ada, bob, chat } = await place(fixture);
    const stored: { id: string; blob: string }[] = [];
    for (const _ of times(3)) stored.push(await store.write((tx) => newFile(tx, ada, chat)));
    const [one, other, kept] = stored as [(typeof stored)[0], ...typeof stored];
    const message = await store.write((tx) => sendFiles(tx, chat, ada, [one.id, other?.id ?? ""]));
    await store.write((tx) => sendFiles(tx, chat, ada, [kept?.id ?? ""]));
    await fixture.remove(message);
    expect(await abandoned(fixture)).toEqual([one.blob, other?.blob ?? ""].sort());
    const left = await store.read((tx) => tx.files(stored.map(({ id }) => id)));
    expect(left.map(({ id }) => id)).toEqual([kept?.id ?? ""]);
    expect(await store.read((tx) => tx.messageViews([message.id], bob.id))).toEqual([]);
    await store.write((tx) => tx.forgetBlobs([one.blob, Bun.randomUUIDv7()]));
    expect(await abandoned(fixture)).toEqual([other?.blob ?? ""]);
  });

  check("a unit that fails deletes and abandons nothing", async (fixture) => {
    const { store } = fixture;
    const { ada, chat } = await place(fixture);
    const { id } = await store.write((tx) => newFile(tx, ada, chat));
    const unit = store.write(async (tx) => {
      await tx.deleteUnusedFiles([id]);
      throw new Error("the unit fails");
    });
    expect(await failed(unit)).toBe(true);
    expect(await file(fixture, id)).toBeDefined();
    expect(await abandoned(fixture)).toEqual([]);
  });

  check("files that nothing uses are found by their age, and deleted", async (fixture) => {
    const { store } = fixture;
    const { ada, chat } = await place(fixture);
    const old = await store.write((tx) => newFile(tx, ada, chat, { at: START - 2 }));
    const older = await store.write((tx) => newFile(tx, ada, chat, { at: START - 3, waits: true }));
    const used = await store.write((tx) => newFile(tx, ada, chat, { at: START - 4 }));
    await store.write((tx) => newFile(tx, ada, chat));
    await store.write((tx) => sendFiles(tx, chat, ada, [used.id]));
    const unused = (limit: number) => store.read((tx) => tx.unusedFiles(START, limit));
    expect(await unused(10)).toEqual([older.id, old.id]);
    expect(await unused(1)).toEqual([older.id]);
    const ids = [old.id, older.id, used.id, Bun.randomUUIDv7()];
    expect(await store.write((tx) => tx.deleteUnusedFiles(ids))).toBe(2);
    expect(await unused(10)).toEqual([]);
    expect(await abandoned(fixture)).toEqual([old.blob]);
  });

  check(
    "erasing an account deletes its unused files, and keeps those of messages",
    async (fixture) => {
      const { store } = fixture;
      const { ada, bob, chat } = await place(fixture);
      const used = await store.write((tx) => newFile(tx, ada, chat));
      await store.write((tx) => sendFiles(tx, chat, ada, [used.id]));
      const unused = await store.write((tx) => newFile(tx, ada, chat));
      const waiting = await store.write((tx) => newFile(tx, ada, chat, { waits: true }));
      const others = await store.write((tx) => newFile(tx, bob, chat));
      await store.write((tx) => tx.eraseAccount(ada, { messages: false, at: START }));
      expect(await file(fixture, used.id)).toMatchObject({
        owner_state: "erased",
        status: "ready",
      });
      expect(await file(fixture, unused.id)).toBeUndefined();
      expect(await file(fixture, waiting.id)).toBeUndefined();
      expect(await file(fixture, others.id)).toBeDefined();
      expect(await abandoned(fixture)).toEqual([unused.blob]);
      expect(await store.read((tx) => tx.uploadedBytes(ada.id, DAY))).toBe(0);
      expect(
        await store.write((tx) => tx.finishFile(waiting.id, content(Bun.randomUUIDv7()))),
      ).toBe(false);
    },
  );
}

function races(check: Check) {
  const ROUNDS = 20;

  check("a file that is sent and deleted at once is in a message or abandoned", async (fixture) => {
    const { store } = fixture;
    const { ada, chat } = await place(fixture);
    for (const round of times(ROUNDS)) {
      const stored: { id: string; blob: string }[] = [];
      for (const _ of times(3)) stored.push(await store.write((tx) => newFile(tx, ada, chat)));
      const ids = stored.map(({ id }) => id);
      const reversed = ids.toReversed();
      const sending = () => failed(store.write((tx) => sendFiles(tx, chat, ada, ids)));
      const deleting = () => store.write((tx) => tx.deleteUnusedFiles(reversed));
      const [isRefused, deleted] =
        round % 2 === 0
          ? await Promise.all([sending(), deleting()])
          : await Promise.all([deleting(), sending()]).then(([one, other]) => [other, one]);
      const blobs = stored.map(({ blob }) => blob).sort();
      expect(deleted).toBe(isRefused ? 3 : 0);
      expect(await abandoned(fixture)).toEqual(isRefused ? blobs : []);
      expect(await store.read((tx) => tx.usedBlobs(blobs))).toHaveLength(isRefused ? 0 : 3);
      await store.write((tx) => tx.forgetBlobs(blobs));
    }
  });

  check("of two messages with the same file at once, one gets it", async (fixture) => {
    const { store } = fixture;
    const { ada, chat } = await place(fixture);
    for (const _ of times(ROUNDS)) {
      const { id } = await store.write((tx) => newFile(tx, ada, chat));
      const sending = () => failed(store.write((tx) => sendFiles(tx, chat, ada, [id])));
      const refused = await Promise.all([sending(), sending()]);
      expect(refused.filter(Boolean)).toHaveLength(1);
    }
  });

  check("of announcements at once, no more see that they fit than fit", async (fixture) => {
    const { store } = fixture;
    const { ada, chat } = await place(fixture);
    const announce = () =>
      store.write(async (tx) => {
        await newFile(tx, ada, chat, { waits: true });
        return tx.uploadedBytes(ada.id, DAY);
      });
    const counted = await Promise.all(times(5).map(announce));
    for (const limit of [8, 16, 24, 32, 40]) {
      expect(counted.filter((bytes) => bytes <= limit).length).toBeLessThanOrEqual(limit / 8);
    }
    expect(Math.max(...counted)).toBe(40);
    expect(await store.read((tx) => tx.uploadedBytes(ada.id, DAY))).toBe(40);
  });

  check("of two uploads that finish at once, one counts", async (fixture) => {
    const { store } = fixture;
    const { ada, chat } = await place(fixture);
    for (const _ of times(ROUNDS)) {
      const { id } = await store.write((tx) => newFile(tx, ada, chat, { waits: true }));
      const blobs = [Bun.randomUUIDv7(), Bun.randomUUIDv7()];
      const finished = await Promise.all(
        blobs.map((blob) => store.write((tx) => tx.finishFile(id, content(blob)))),
      );
      expect(finished.filter(Boolean)).toHaveLength(1);
      expect((await file(fixture, id))?.blob).toBe(blobs[finished.indexOf(true)] ?? "");
    }
  });
}
