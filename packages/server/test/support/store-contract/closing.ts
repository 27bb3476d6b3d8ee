import { expect } from "bun:test";
import type { Store } from "../../../src/store/store.ts";
import { searchPatiently } from "../search.ts";
import {
  at,
  type Check,
  inSequence,
  newAccount,
  recordOf,
  START,
  send,
  times,
  wholeHistory,
} from "./fixture.ts";

export function closing(check: Check) {
  check("a reopened store has all data", async (fixture) => {
    const [alice, bob] = await fixture.people("alice", "bob");
    const chat = await fixture.group(alice, bob);
    const sent = await inSequence(times(6), (n) =>
      fixture.send(chat, alice, `needle ${n}`, { client_msg_id: `${n}`, mentions: ["bob"] }),
    );
    await fixture.edit(at(sent, 0), "needle edited", ["bob"]);
    await fixture.remove(at(sent, 1), at(sent, 2));
    await fixture.hide(bob, at(sent, 3));
    await fixture.store.write(async (tx) => {
      await tx.addReaction(await recordOf(tx, at(sent, 4)), {
        reactor: bob,
        emoji: "👍",
        at: START,
      });
      await tx.markRead(chat.id, bob.id, 5);
      const session = { token_hash: "hash", account_id: bob.id, user_agent: "x", at: START };
      await tx.insertSession({ id: Bun.randomUUIDv7(), ...session, expires_at: START + 1000 });
    });
    const everything = async (store: Store) => ({
      hits: await searchPatiently(store, { words: ["needle"], viewerId: bob.id, limit: 100 }),
      ...(await store.read(async (tx) => ({
        accounts: await tx.listAccounts({ viewerId: bob.id, limit: 100 }),
        session: await tx.session("hash"),
        chats: await tx.chats({ viewerId: bob.id, limit: 100 }),
        detail: await tx.conversationDetail(chat.id, bob.id),
        members: await tx.members(chat.id),
        history: await wholeHistory(tx, chat, bob),
        updates: await tx.updates({
          conversationId: chat.id,
          viewerId: bob.id,
          since: 0,
          limit: 100,
        }),
        sentBefore: await tx.sentBefore(chat.id, alice.id, "1"),
      }))),
    });
    const before = await everything(fixture.store);
    expect(before.hits).toHaveLength(3);
    const reopened = await fixture.reopen();
    expect(await everything(reopened)).toEqual(before);
    const next = await reopened.write((tx) => send(tx, chat, alice, "next"));
    expect(next.seq).toBe(before.detail.seq + 1);
  });

  check("a write during closing is either stored or rejected", async (fixture) => {
    const [alice] = await fixture.people("alice");
    const chat = await fixture.group(alice);
    const writes = times(40).map((n) => fixture.send(chat, alice, `${n}`).catch(() => null));
    const reopening = fixture.reopen();
    const kept = (await Promise.all(writes)).filter((message) => message !== null);
    const reopened = await reopening;
    const shown = await reopened.read((tx) => wholeHistory(tx, chat, alice));
    expect(shown).toEqual(kept);
  });

  check("a closed store rejects writes", async (fixture) => {
    const reopened = await fixture.reopen();
    let refused = false;
    fixture.people("alice").catch(() => {
      refused = true;
    });
    // Time enough for a store that works to have done as much.
    for (const n of times(3)) {
      await reopened.write((tx) => newAccount(tx, { username: `user${n}` }));
    }
    expect(refused).toBe(true);
    expect(await reopened.read((tx) => tx.account("alice"))).toBeNull();
  });
}
