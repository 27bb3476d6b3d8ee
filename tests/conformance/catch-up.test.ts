import { describe, expect, test } from "bun:test";
import type { Message, OutputOf } from "@parley/protocol";
import {
  agentOf,
  type Caller,
  failure,
  groupOf,
  type Person,
  people,
  say,
  transports,
} from "@parley/testkit/client.ts";
import { sharedServer } from "@parley/testkit/shared-server.ts";
import fc from "fast-check";

const server = await sharedServer();
const [alice, bob, carol] = await people(server.url, "alice", "bob", "carol");
type Updates = Extract<OutputOf<"getUpdates">, { messages: unknown }>;
type Overview = Extract<OutputOf<"getUpdates">, { ahead: unknown }>;

const updates = (caller: Caller, chat_id: string, since_seq: number, limit?: number) =>
  caller.call("getUpdates", { chat_id, since_seq, ...(limit && { limit }) }) as Promise<Updates>;
const changes = (caller: Caller, since: { accounts_since?: number; own_since?: number }) =>
  caller.call("getUpdates", since) as Promise<Overview>;
const overview = (caller: Caller, known: Record<string, number>) =>
  caller.call("getUpdates", { known }) as Promise<Overview>;

/** A copy of a conversation that is updated by getUpdates only. */
class Replica {
  readonly messages = new Map<string, Message>();
  seq = 0;
  private readonly caller: Caller;
  private readonly chat_id: string;

  constructor(caller: Caller, chat_id: string) {
    this.caller = caller;
    this.chat_id = chat_id;
  }

  async catchUp(limit?: number): Promise<Updates> {
    const page = await updates(this.caller, this.chat_id, this.seq, limit);
    expect(page.messages.every(({ version }) => version > this.seq)).toBe(true);
    for (const message of page.messages) this.messages.set(message.id, message);
    for (const id of page.deleted_ids) this.messages.delete(id);
    this.seq = page.seq;
    return page.has_more ? this.catchUp(limit) : page;
  }

  inOrder(): Message[] {
    return [...this.messages.values()].sort((one, other) => one.seq - other.seq);
  }
}

describe.each(transports)("getUpdates of a conversation over %s", (transport) => {
  test("returns every message that is new or changed since, and the next since_seq", async () => {
    const chat = await groupOf(alice, bob);
    const old = await say(alice, chat, "old");
    const changed = await say(alice, chat, "changed");
    const since = changed.seq;
    const fresh = await say(alice, chat, "fresh");
    const edited = await alice.call("editMessage", { message_id: changed.id, content: "edited" });
    await using caller = await bob.via(transport);
    const page = await updates(caller, chat.id, since);
    expect(page.messages.toSorted((a, b) => a.seq - b.seq)).toEqual([edited, fresh]);
    expect(page).toMatchObject({ deleted_ids: [], seq: edited.version, has_more: false });
    expect(page.messages.map(({ id }) => id)).not.toContain(old.id);
  });

  test("returns a message whose reactions changed", async () => {
    const chat = await groupOf(alice, bob);
    const { id, seq } = await say(alice, chat, "hello");
    await bob.call("addReaction", { message_id: id, emoji: "👍" });
    await using caller = await bob.via(transport);
    const { messages } = await updates(caller, chat.id, seq);
    expect(messages[0]?.reactions).toEqual([{ emoji: "👍", count: 1, reacted: true }]);
  });

  test("returns the conversation as it is for the caller", async () => {
    const chat = await groupOf(alice, bob);
    await say(alice, chat, "hello");
    await alice.call("setChatTitle", { chat_id: chat.id, title: "new title" });
    await using caller = await bob.via(transport);
    const { conversation, seq } = await updates(caller, chat.id, chat.seq);
    const { reads: _, ...expected } = await bob.call("getChat", { chat_id: chat.id });
    expect(conversation).toEqual(expected);
    expect(conversation).toMatchObject({ title: "new title", unread_count: 1, seq });
  });

  test("returns the read position of each person", async () => {
    const chat = await groupOf(alice, bob, { username: agentOf(alice) });
    const { seq } = await say(alice, chat, "hello");
    await using caller = await alice.via(transport);
    const { reads, conversation } = await updates(caller, chat.id, seq);
    expect(reads).toEqual({ [alice.username]: seq, [bob.username]: chat.seq });
    expect(conversation.last_read_seq).toBe(seq);
    await bob.call("readChat", { chat_id: chat.id, seq });
    expect((await updates(caller, chat.id, seq)).reads).toMatchObject({ [bob.username]: seq });
  });

  test("lists messages that were deleted for everyone or hidden by the caller", async () => {
    const chat = await groupOf(alice, bob);
    const [one, two] = [await say(alice, chat, "one"), await say(alice, chat, "two")];
    await alice.call("deleteMessages", { chat_id: chat.id, message_ids: [one.id] });
    await bob.call("deleteMessagesForMe", { chat_id: chat.id, message_ids: [two.id] });
    await using caller = await bob.via(transport);
    const mine = await updates(caller, chat.id, two.seq);
    expect(mine.deleted_ids.toSorted()).toEqual([one.id, two.id].toSorted());
    expect(mine.messages).toEqual([]);
    await using other = await alice.via(transport);
    expect((await updates(other, chat.id, two.seq)).deleted_ids).toEqual([one.id]);
  });

  test("lists a message once that was hidden by the caller and then deleted for everyone", async () => {
    const chat = await groupOf(alice, bob);
    const { id, seq } = await say(alice, chat, "one");
    await bob.call("deleteMessagesForMe", { chat_id: chat.id, message_ids: [id] });
    await alice.call("deleteMessages", { chat_id: chat.id, message_ids: [id] });
    await using caller = await bob.via(transport);
    expect((await updates(caller, chat.id, seq)).deleted_ids).toEqual([id]);
  });

  test("is empty for a client that is up to date", async () => {
    const chat = await groupOf(alice, bob);
    const { seq } = await say(alice, chat, "hello");
    await using caller = await bob.via(transport);
    const page = await updates(caller, chat.id, seq);
    expect(page).toMatchObject({ messages: [], deleted_ids: [], seq, has_more: false });
  });

  test("pages through all messages without gaps or repeats", async () => {
    const chat = await groupOf(alice, bob);
    for (let n = 0; n < 7; n++) await say(alice, chat, `${n}`);
    await using caller = await bob.via(transport);
    const seen: string[] = [];
    let page = await updates(caller, chat.id, 0, 3);
    const sizes = [page.messages.length];
    seen.push(...page.messages.map(({ content }) => content));
    while (page.has_more) {
      page = await updates(caller, chat.id, page.seq, 3);
      sizes.push(page.messages.length);
      seen.push(...page.messages.map(({ content }) => content));
    }
    expect(seen).toEqual(["0", "1", "2", "3", "4", "5", "6"]);
    expect(sizes).toEqual([3, 3, 1]);
  });

  test("never splits the deletion of several messages over two pages", async () => {
    const chat = await groupOf(alice, bob);
    const ids: string[] = [];
    for (let n = 0; n < 6; n++) ids.push((await say(alice, chat, `${n}`)).id);
    await using caller = await bob.via(transport);
    const replica = new Replica(caller, chat.id);
    await replica.catchUp();
    await alice.call("deleteMessages", { chat_id: chat.id, message_ids: ids.slice(0, 5) });
    await replica.catchUp(2);
    expect(replica.inOrder().map(({ content }) => content)).toEqual(["5"]);
  });

  test("needs since_seq, is 404 for an unknown conversation and 403 for one of other people", async () => {
    const chat = await groupOf(alice, bob);
    await using member = await bob.via(transport);
    const without = await failure(member.call("getUpdates", { chat_id: chat.id }));
    expect(without.parameters?.fields).toHaveProperty("since_seq");
    await using stranger = await carol.via(transport);
    expect((await failure(updates(stranger, Bun.randomUUIDv7(), 0))).code).toBe("not_found");
    expect((await failure(updates(stranger, chat.id, 0))).code).toBe("forbidden");
  });
});

describe.each(transports)("getUpdates without a conversation over %s", (transport) => {
  test("returns which conversations are ahead, new or gone", async () => {
    const [same, ahead, unknown, left] = await Promise.all(
      Array.from({ length: 4 }, () => groupOf(alice, bob)),
    );
    if (!same || !ahead || !unknown || !left) throw new Error("four groups were asked for");
    const everything = await overview(bob, {});
    const known = Object.fromEntries(
      everything.new.map(({ conversation_id, seq }) => [conversation_id, seq]),
    );
    delete known[unknown.id];
    const { seq } = await say(alice, ahead, "hello");
    await bob.call("leaveChat", { chat_id: left.id });
    const invented = Bun.randomUUIDv7();
    await using caller = await bob.via(transport);
    const found = await overview(caller, { ...known, [invented]: 5 });
    expect(found.ahead).toEqual([{ conversation_id: ahead.id, seq }]);
    expect(found.new).toEqual([{ conversation_id: unknown.id, seq: unknown.seq }]);
    expect(found.gone.toSorted()).toEqual([left.id, invented].toSorted());
  });

  test("lists the conversations whose known counter is above the server's", async () => {
    const chat = await groupOf(alice, bob);
    await using caller = await bob.via(transport);
    const found = await overview(caller, { [chat.id]: chat.seq + 7 });
    expect(found.behind).toEqual([{ conversation_id: chat.id, seq: chat.seq }]);
    expect(found.ahead).toEqual([]);
    expect((await overview(caller, { [chat.id]: chat.seq })).behind).toEqual([]);
  });

  test("has the same history_id as hello", async () => {
    const chat = await groupOf(alice, bob);
    await using socket = await bob.connect();
    const { history_id } = await socket.event("events.hello");
    await using caller = await bob.via(transport);
    expect(await overview(caller, {})).toMatchObject({ history_id });
    expect(await updates(caller, chat.id, 0)).toMatchObject({ history_id });
  });

  test("returns accounts with a new name to those who share a conversation", async () => {
    const [one, other, stranger] = await people(server.url, "one", "other", "stranger");
    await groupOf(one, other);
    await using caller = await one.via(transport);
    const { accounts_seq } = await overview(caller, {});
    const { presence: _, ...renamed } = await other.call("updateMe", { display_name: "Other" });
    await stranger.call("updateMe", { display_name: "Stranger" });
    const agent = await one.call("setAgentProfile", { provider: "claude", display_name: "Scout" });
    expect(renamed.version).toBeGreaterThan(accounts_seq);
    const found = await changes(caller, { accounts_since: accounts_seq });
    expect(found.accounts).toEqual([
      renamed,
      { username: agent.username, kind: "agent", display_name: "Scout", version: agent.version },
    ]);
    expect(found.accounts_seq).toBeGreaterThanOrEqual(agent.version);
    const { accounts_seq: seq } = found;
    expect((await changes(caller, { accounts_since: seq })).accounts).toEqual([]);
    expect([found.ahead, found.new, found.gone]).toEqual([[], [], []]);
  });

  test("returns new names of those who left the caller's conversations", async () => {
    const [one, other, third] = await people(server.url, "one", "other", "third");
    const chat = await groupOf(one, other, third);
    await say(other, chat, "hello");
    await other.call("leaveChat", { chat_id: chat.id });
    await one.call("removeChatMember", { chat_id: chat.id, username: third.username });
    await using caller = await one.via(transport);
    await using reader = await one.connect();
    const { accounts_seq } = await overview(caller, {});
    const { presence: _, ...renamed } = await other.call("updateMe", { display_name: "Other" });
    expect((await reader.event("events.accountUpdated")).params).toEqual(renamed);
    const since = { accounts_since: accounts_seq };
    expect((await changes(caller, since)).accounts).toEqual([renamed]);
    // Who left the conversation does not see its history.
    for (const each of [other, third]) {
      await one.call("updateMe", { display_name: `Seen by ${each.username}` });
      const { accounts } = await changes(each, since);
      expect(accounts.map(({ username }) => username)).not.toContain(one.username);
    }
  });

  test("returns the messages that the caller has hidden since", async () => {
    const chat = await groupOf(alice, bob);
    const sent = [await say(alice, chat, "one"), await say(alice, chat, "two")];
    await using caller = await bob.via(transport);
    const { own_seq } = await overview(caller, {});
    for (const { id } of sent) {
      await bob.call("deleteMessagesForMe", { chat_id: chat.id, message_ids: [id] });
    }
    const ids = sent.map(({ id }) => id);
    expect(await changes(caller, { own_since: own_seq })).toMatchObject({
      hidden: [{ conversation_id: chat.id, ids }],
      own_seq: own_seq + 2,
      has_more: false,
    });
    expect((await changes(caller, { own_since: own_seq + 2 })).hidden).toEqual([]);
    expect((await changes(alice, { own_since: 0 })).hidden).not.toContainEqual(
      expect.objectContaining({ conversation_id: chat.id }),
    );
  });

  test("needs the counters that the client knows", async () => {
    await using caller = await bob.via(transport);
    const failed = await failure(caller.call("getUpdates", {}));
    expect(failed.code).toBe("bad_request");
    expect(failed.parameters?.fields).toHaveProperty("known");
  });
});

/** A random change; `pick` chooses its message. */
interface Step {
  by: "alice" | "bob";
  pick: number;
  change: "send" | "mention" | "edit" | "react" | "delete" | "hide" | "read" | "rename" | "sync";
}

const steps = fc.array(
  fc.record<Step>({
    by: fc.constantFrom("alice", "bob"),
    pick: fc.nat(),
    change: fc.constantFrom(
      ...(["send", "send", "mention", "edit", "react", "delete", "hide"] as const),
      ...(["read", "rename", "sync"] as const),
    ),
  }),
  { minLength: 10, maxLength: 40 },
);

async function take({ by, pick, change }: Step, chat_id: string): Promise<void> {
  const person = by === "alice" ? alice : bob;
  const other = by === "alice" ? bob : alice;
  const { items } = await person.call("getChatHistory", { chat_id, limit: 100 });
  const picked = items[pick % Math.max(items.length, 1)];
  const message_ids = picked ? [picked.id] : [];
  const content = pick % 2 ? `edit ${pick}` : `@${other.username} ${pick}`;
  if (change === "send") await say(person, { id: chat_id }, `message ${pick}`);
  else if (change === "mention") await say(person, { id: chat_id }, `@${other.username}`);
  else if (change === "rename") await person.call("setChatTitle", { chat_id, title: `t${pick}` });
  else if (!picked) return;
  else if (change === "hide") await person.call("deleteMessagesForMe", { chat_id, message_ids });
  else if (change === "read") await person.call("readChat", { chat_id, seq: picked.seq });
  else if (change === "react")
    await person.call("setMessageReaction", { message_id: picked.id, emoji: "👍" });
  else if (picked.sender.username !== person.username) return;
  else if (change === "edit") await person.call("editMessage", { message_id: picked.id, content });
  else if (change === "delete") await person.call("deleteMessages", { chat_id, message_ids });
}

/** The unread counts of a person, counted from the messages. */
async function countUnread(person: Person, chat_id: string) {
  const { items } = await person.call("getChatHistory", { chat_id, limit: 100 });
  const { last_read_seq } = await person.call("getChat", { chat_id });
  const unread = items.filter(
    ({ seq, sender }) => seq > last_read_seq && sender.username !== person.username,
  );
  const mentions = unread.filter((message) => message.mentions.includes(person.username));
  return { human: unread.length, agent: 0, mentions: mentions.length };
}

describe("after any series of changes", () => {
  test("a client that was offline becomes identical to one that fetches everything", () =>
    fc.assert(
      fc.asyncProperty(steps, fc.integer({ min: 1, max: 5 }), async (series, limit) => {
        const chat = await groupOf(alice, bob);
        const replica = new Replica(bob, chat.id);
        for (const step of series) {
          if (step.change === "sync") await replica.catchUp(limit);
          else await take(step, chat.id);
        }
        const { conversation } = await replica.catchUp(limit);
        const { items } = await bob.call("getChatHistory", { chat_id: chat.id, limit: 100 });
        expect(replica.inOrder()).toEqual(items);
        const { reads: _, ...expected } = await bob.call("getChat", { chat_id: chat.id });
        expect(conversation).toEqual(expected);
      }),
      { numRuns: 30 },
    ));

  test("the unread counts equal a count of the messages", () =>
    fc.assert(
      fc.asyncProperty(steps, async (series) => {
        const chat = await groupOf(alice, bob);
        for (const step of series) await take(step, chat.id);
        for (const person of [alice, bob]) {
          const { unread, unread_count } = await person.call("getChat", { chat_id: chat.id });
          expect(unread).toEqual(await countUnread(person, chat.id));
          expect(unread_count).toBe(unread.human + unread.agent);
        }
      }),
      { numRuns: 30 },
    ));
});
