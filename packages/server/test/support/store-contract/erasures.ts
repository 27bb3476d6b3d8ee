import { expect } from "bun:test";
import type { AccountRecord } from "../../../src/store/accounts.ts";
import type { MessageFilter, MessageRange } from "../../../src/store/message-records.ts";
import { type Check, type Fixture, newAccount, newAgent, START } from "./fixture.ts";

export function erasures(check: Check) {
  const account = ({ store }: Fixture, { username }: AccountRecord) =>
    store.read((tx) => tx.account(username));
  const erase = ({ store }: Fixture, erased: AccountRecord, messages = false) =>
    store.write((tx) => tx.eraseAccount(erased, { messages, at: START + 1 }));

  check("erasing an account leaves its username, and nothing to use it with", async (fixture) => {
    const { store } = fixture;
    const [bob] = await fixture.people("bob");
    const { ada, agent } = await store.write(async (tx) => {
      const ada = await newAccount(tx, {
        username: "ada",
        display_name: "Ada Lovelace",
        password_hash: "hash",
        external_id: "42",
        metadata: { plan: "gold" },
      });
      const agent = await newAgent(tx, ada, "claude");
      const key = { owner_id: ada.id, provider: "claude", sealed: "sealed", tail: "tail" };
      await tx.setAgentKey({ ...key, at: START });
      await tx.setAgentProfile(agent.id, { model: "m", instructions: "Be kind to Ada." });
      await tx.addOperator(ada.id, START);
      const identity = { issuer: "issuer", subject: "subject", account_id: ada.id };
      await tx.insertIdentity({ ...identity, at: START });
      await tx.insertIncomingHook({
        id: "hook",
        secret_hash: "hash",
        chat: Bun.randomUUIDv7(),
        name: "alerts",
        creator: "ada",
        account: "ada:alerts",
        created_at: START,
      });
      return { ada, agent };
    });
    await store.write((tx) =>
      tx.insertSession({
        id: Bun.randomUUIDv7(),
        token_hash: "token",
        account_id: ada.id,
        user_agent: "a browser",
        network: "network",
        at: START,
        expires_at: START + 1000,
      }),
    );
    expect(await store.read((tx) => tx.ownedAccounts(ada.id))).toEqual([agent]);

    expect(await erase(fixture, ada)).toBe(true);
    const erased = { erased_at: START + 1, suspended_at: START + 1 };
    expect(await account(fixture, ada)).toEqual({ ...ada, ...erased });
    expect(await account(fixture, agent)).toEqual({ ...agent, erased_at: START + 1 });
    await store.read(async (tx) => {
      expect((await tx.credentials("ada"))?.password_hash).toBeNull();
      expect(await tx.accountByExternalId("42")).toBeNull();
      expect(await tx.identity("issuer", "subject")).toBeNull();
      expect(await tx.unlinkedAccount("ada")).toBeNull();
      expect(await tx.isOperator(ada.id)).toBe(false);
      expect(await tx.incomingHook("hook")).toBeNull();
      expect(await tx.managedAccounts({ limit: 10 })).toMatchObject([{ username: "bob" }]);
      expect(await tx.agent(agent.id)).toMatchObject({ sealed_key: null, instructions: null });
      expect(await tx.signedInFrom(ada.id, "network")).toBe(false);
      expect(await tx.session("token")).toMatchObject({ ended_at: START + 1 });
      const found = { viewerId: bob.id, query: "ada", limit: 10 };
      expect(await tx.findAccounts(found)).toEqual([]);
      const listed = await tx.listAccounts({ viewerId: bob.id, limit: 10 });
      expect(listed.map(({ username }) => username)).toEqual(["bob"]);
      const named = { viewerId: bob.id, usernames: ["ada"], limit: 10 };
      expect(await tx.listAccounts(named)).toHaveLength(1);
    });
    const again = await store.write((tx) =>
      tx.insertAccount({ username: "ada", kind: "human", display_name: "Another", at: START }),
    );
    expect(again).toBeNull();
  });

  check("a new display name does not make an erased account findable", async (fixture) => {
    const { store } = fixture;
    const [ada, bob] = await fixture.people("ada", "bob");
    await erase(fixture, ada);
    await store.write((tx) => tx.setDisplayName(ada.id, "Deleted account"));
    const reopened = await fixture.reopen();
    for (const query of ["ada", "deleted"]) {
      const found = { viewerId: bob.id, query, limit: 10 };
      expect(await reopened.read((tx) => tx.findAccounts(found))).toEqual([]);
    }
  });

  check("erasures are open until they are finished, and happen once", async (fixture) => {
    const { store } = fixture;
    const [ada, bob] = await fixture.people("ada", "bob");
    const open = async () =>
      (await store.read((tx) => tx.openErasures())).map(({ account: { username }, messages }) => ({
        username,
        messages,
      }));
    expect(await erase(fixture, ada)).toBe(true);
    expect(await erase(fixture, bob, true)).toBe(true);
    expect(await erase(fixture, ada, true)).toBe(false);
    expect(await open()).toEqual([
      { username: "ada", messages: false },
      { username: "bob", messages: true },
    ]);
    await store.write((tx) => tx.finishErasure(ada.id));
    expect(await open()).toEqual([{ username: "bob", messages: true }]);
    expect(await erase(fixture, ada)).toBe(false);
  });

  check("everybody sees that an account is deleted, wherever it is shown", async (fixture) => {
    const { store } = fixture;
    const [ada, bob] = await fixture.people("ada", "bob");
    const chat = await fixture.group(ada, bob);
    await fixture.send(chat, ada, "hello");
    await erase(fixture, ada);
    const view = await fixture.view(chat, bob);
    expect(view.created_by.deleted).toBe(true);
    expect(view.last_message?.sender.deleted).toBe(true);
    expect(view.participants.map(({ username, deleted }) => [username, deleted])).toEqual([
      ["ada", true],
      ["bob", undefined],
    ]);
    expect(JSON.stringify(view)).not.toContain("erased_at");
    const detail = await store.read((tx) => tx.conversationDetail(chat.id, bob.id));
    expect(detail.participants[0]).toEqual(view.participants[0]);
  });

  check("a conversation that is closed says so", async (fixture) => {
    const { store } = fixture;
    const [ada] = await fixture.people("ada");
    const chat = await fixture.group(ada);
    const closedAt = async () =>
      (await store.read((tx) => tx.conversation(chat.uuid, ada.id)))?.closed_at;
    expect(await closedAt()).toBeNull();
    await fixture.writeIn(chat, (tx) => tx.closeConversation(chat.id, START));
    expect(await closedAt()).toBe(START);
  });
}

export function messageScans(check: Check) {
  const scan = async ({ store }: Fixture, range: MessageRange, filter: MessageFilter) =>
    (await store.read((tx) => tx.scanMessages(range, filter))).map(({ uuid }) => uuid);

  check("messages are found by sender or time, in ranges", async (fixture) => {
    const { store } = fixture;
    const last = () => store.read((tx) => tx.lastMessageId());
    expect(await last()).toBe(0);
    const [ada, bob] = await fixture.people("ada", "bob");
    const chats = [await fixture.group(ada, bob), await fixture.group(bob, ada)] as const;
    const first = await fixture.send(chats[0], ada, "one", { mentions: ["bob"], at: START + 2 });
    const second = await fixture.send(chats[1], bob, "two", { at: START + 1 });
    const middle = await last();
    const third = await fixture.send(chats[1], ada, "three", { at: START + 3 });
    const gone = await fixture.send(chats[0], ada, "four", { at: START });
    await fixture.remove(gone);
    const all = { after: 0, upTo: await last() };
    expect(await scan(fixture, all, { senderIds: [ada.id] })).toEqual([first.id, third.id]);
    expect(await scan(fixture, all, { senderIds: [] })).toEqual([]);
    expect(await scan(fixture, { after: middle, upTo: all.upTo }, { senderIds: [ada.id] })).toEqual(
      [third.id],
    );
    expect(await scan(fixture, all, { before: START + 3 })).toEqual([first.id, second.id]);
    const [record] = await store.read((tx) => tx.scanMessages(all, { before: START + 3 }));
    expect(record).toEqual((await store.read((tx) => tx.message(first.id))) ?? undefined);
    const oldest = (range: MessageRange) => store.read((tx) => tx.oldestMessageAt(range));
    expect(await oldest(all)).toBe(START + 1);
    expect(await oldest({ after: middle, upTo: all.upTo })).toBe(START + 3);
    expect(await oldest({ after: all.upTo, upTo: all.upTo + 10 })).toBeNull();
  });
}
