import { afterAll, describe, expect, test } from "bun:test";
import type { Message } from "@parley/protocol";
import {
  failure,
  groupOf,
  type Person,
  people,
  say,
  search,
  signUp,
} from "@parley/testkit/client.ts";
import { limits, startServer } from "@parley/testkit/server.ts";

const PAGE_BYTES = 65_536;
const server = await startServer(
  limits({ page_bytes: PAGE_BYTES, messages_per_second: 0, operations_per_second: 0 }),
);
afterAll(() => server[Symbol.asyncDispose]());

/** A message has at most 32,768 bytes; as JSON these take twice as many. */
const LONGEST = '"'.repeat(32_768);
const LONG = "long ".repeat(4000);
const bytesOf = (value: unknown) => Buffer.byteLength(JSON.stringify(value));
const idsOf = (messages: readonly Message[]) => messages.map(({ id }) => id);

async function chatOf(person: Person, count: number) {
  const chat = await groupOf(person);
  const sent: Message[] = [];
  for (let n = 0; n < count; n++) sent.push(await say(person, chat, `${n} ${LONG}`));
  return { chat, sent };
}

/** Calls for page after page, and returns their items. Throws if one is too large. */
async function pages<Page, Item>(
  first: Page,
  items: (page: Page) => readonly Item[],
  next: (page: Page) => Promise<Page> | null,
): Promise<Item[]> {
  const all: Item[] = [];
  for (let page: Page | null = first; page; page = await next(page)) {
    expect(items(page).length).toBeGreaterThan(0);
    if (items(page).length > 1) expect(bytesOf(items(page))).toBeLessThanOrEqual(PAGE_BYTES);
    all.push(...items(page));
  }
  return all;
}

describe.concurrent("pages of long messages", () => {
  test("of the history are cut at page_bytes, and lead on to all messages", async () => {
    const alice = await signUp(server.url);
    const { chat, sent } = await chatOf(alice, 8);
    const chat_id = chat.id;
    const back = await pages(
      await alice.call("getChatHistory", { chat_id }),
      ({ items }) => items.toReversed(),
      ({ items, has_more }) =>
        has_more ? alice.call("getChatHistory", { chat_id, before: items[0]?.id }) : null,
    );
    expect(idsOf(back)).toEqual(idsOf(sent.toReversed()));
    const on = await pages(
      await alice.call("getChatHistory", { chat_id, after: sent[0]?.id }),
      ({ items }) => items,
      ({ items, has_more }) =>
        has_more ? alice.call("getChatHistory", { chat_id, after: items.at(-1)?.id }) : null,
    );
    expect(idsOf(on)).toEqual(idsOf(sent.slice(1)));
    const around = await alice.call("getChatHistory", { chat_id, around: sent[4]?.id });
    expect(around.has_more).toBe(true);
    expect(idsOf(around.items)).toContain(sent[4]?.id as string);
    expect(bytesOf(around.items)).toBeLessThanOrEqual(PAGE_BYTES);
  });

  test("of updates are cut at page_bytes, and lead on to all changes", async () => {
    const alice = await signUp(server.url);
    const { chat, sent } = await chatOf(alice, 8);
    const [first, second] = idsOf(sent) as [string, string];
    await alice.call("editMessage", { message_id: first, content: `edited ${LONG}` });
    await alice.call("deleteMessages", { chat_id: chat.id, message_ids: [second] });
    const updates = async (since_seq: number) => {
      const page = await alice.call("getUpdates", { chat_id: chat.id, since_seq });
      if (!("messages" in page)) throw new Error("not the updates of a conversation");
      return page;
    };
    const gone = new Set<string>();
    const all = await pages(
      await updates(chat.seq),
      ({ messages, deleted_ids }) => {
        for (const id of deleted_ids) gone.add(id);
        return messages;
      },
      ({ seq, has_more }) => (has_more ? updates(seq) : null),
    );
    expect(idsOf(all)).toEqual([...idsOf(sent.slice(2)), first]);
    expect([...gone]).toEqual([second]);
  });

  test("of a search are cut at page_bytes, and lead on to all hits", async () => {
    const alice = await signUp(server.url);
    const { chat, sent } = await chatOf(alice, 6);
    const query = { query: "long", chat_id: chat.id };
    const found = await pages(
      await search(alice, query),
      ({ items }) => items.map(({ message }) => message),
      ({ next_cursor }) =>
        next_cursor ? alice.call("searchMessages", { ...query, cursor: next_cursor }) : null,
    );
    expect(idsOf(found)).toEqual(idsOf(sent.toReversed()));
  });

  test("have one message where a single one is larger", async () => {
    const alice = await signUp(server.url);
    const chat = await groupOf(alice);
    const [, second] = [await say(alice, chat, LONGEST), await say(alice, chat, LONGEST)];
    const { items, has_more } = await alice.call("getChatHistory", { chat_id: chat.id });
    expect({ ids: idsOf(items), has_more }).toEqual({ ids: [second.id], has_more: true });
  });
});

describe.concurrent("the last message of a conversation", () => {
  test("is an excerpt if it is long, in the list and in events", async () => {
    const [alice, bob] = await people(server.url, "alice", "bob");
    const chat = await groupOf(alice);
    await using socket = await bob.connect();
    const sent = await say(alice, chat, `${"x".repeat(1999)}😀${LONG}`);
    await alice.call("addChatMembers", { chat_id: chat.id, usernames: [bob.username] });
    const excerpt = { id: sent.id, content: "x".repeat(1999), excerpt: true };
    const { params } = await socket.event("events.conversationNew");
    expect(params.last_message).toMatchObject(excerpt);
    const { items } = await bob.call("getChats");
    expect(items[0]?.last_message).toMatchObject(excerpt);
    const whole = await bob.call("getMessage", { message_id: sent.id });
    expect(whole).toEqual(sent);
  });

  test("is whole if it is short", async () => {
    const alice = await signUp(server.url);
    const chat = await groupOf(alice);
    const sent = await say(alice, chat, "x".repeat(2000));
    const { items } = await alice.call("getChats");
    expect(items[0]?.last_message).toEqual(sent);
  });

  test("does not make a list of many conversations too large", async () => {
    const alice = await signUp(server.url);
    const made: string[] = [];
    for (let n = 0; n < 60; n++) {
      const chat = await groupOf(alice);
      await say(alice, chat, LONGEST);
      made.push(chat.id);
    }
    const listed = await pages(
      await alice.call("getChats", { limit: 100 }),
      ({ items }) => items,
      ({ next_cursor }) =>
        next_cursor ? alice.call("getChats", { limit: 100, cursor: next_cursor }) : null,
    );
    expect(listed.map(({ id }) => id)).toEqual(made.toReversed());
  });
});

describe.concurrent("control characters", () => {
  const problem =
    "must be well-formed Unicode without control characters, except tabs and line breaks";

  test("are refused in messages, names and names of fields", async () => {
    const alice = await signUp(server.url);
    const chat = await groupOf(alice);
    const { id } = await say(alice, chat, "first");
    const target = { chat_id: chat.id, message_id: id };
    for (const control of ["\u0000", "\u0001", "\b", "\f", "\r", "\u001f"]) {
      const text = `a${control}b`;
      const sent = await failure(say(alice, chat, text));
      expect(sent.parameters).toEqual({ fields: { content: problem } });
      const edited = await failure(alice.call("editMessage", { message_id: id, content: text }));
      expect(edited.parameters).toEqual({ fields: { content: problem } });
      const named = await failure(alice.call("updateMe", { display_name: text }));
      expect(named.code).toBe("bad_request");
      for (const fields of [{ [text]: "value" }, { name: text }, { list: [{ name: text }] }]) {
        const acted = alice.call("sendComponentAction", {
          ...target,
          action: "form_submit:x",
          fields,
        });
        expect((await failure(acted)).code).toBe("bad_request");
      }
    }
  });

  test("are no tabs and line breaks, which messages may have", async () => {
    const alice = await signUp(server.url);
    const chat = await groupOf(alice);
    // The last is what shells leave of a file of Windows.
    for (const content of ["one\ttwo\nthree\r\nfour", "one\r"]) {
      const { id, ...sent } = await say(alice, chat, content);
      expect(sent.content).toBe(content);
      const fields = { name: content };
      const target = { chat_id: chat.id, message_id: id };
      await alice.call("sendComponentAction", { ...target, action: "form_submit:x", fields });
    }
  });
});
