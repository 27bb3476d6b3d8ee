import { describe, expect, test } from "bun:test";
import {
  type Caller,
  failure,
  groupOf,
  pagesOf,
  people,
  say,
  search,
  transports,
} from "@parley/testkit/client.ts";
import { sharedServer } from "@parley/testkit/shared-server.ts";

const server = await sharedServer();
const [alice, bob, carol] = await people(server.url, "alice", "bob", "carol");
/** A word that is unique in the run. */
const word = () => `w${Bun.randomUUIDv7().replaceAll("-", "")}`;

type Query = Parameters<typeof search>[1];

describe.each(transports)("searchMessages over %s", (transport) => {
  const find = async (caller: Caller, query: Query) => {
    const { items } = await search(caller, query);
    return items.map(({ message }) => message.id);
  };

  test("finds messages by their words, in any case, with a snippet", async () => {
    const chat = await groupOf(alice, bob);
    const term = word();
    const sent = await say(alice, chat, `The quick ${term} jumps`);
    await using caller = await bob.via(transport);
    const { items, next_cursor } = await search(caller, {
      query: `QUICK ${term.toUpperCase()}`,
    });
    expect(items).toEqual([{ message: sent, snippet: expect.stringContaining(term) }]);
    expect(next_cursor).toBeNull();
  });

  test("needs every word of the query", async () => {
    const chat = await groupOf(alice, bob);
    const term = word();
    await say(alice, chat, `only ${term}`);
    await using caller = await bob.via(transport);
    expect(await find(caller, { query: `${term} ${word()}` })).toEqual([]);
  });

  test("searches the caller's own conversations only", async () => {
    const term = word();
    const sent = await say(alice, await groupOf(alice, bob), term);
    await using member = await bob.via(transport);
    await using stranger = await carol.via(transport);
    expect(await find(member, { query: term })).toEqual([sent.id]);
    expect(await find(stranger, { query: term })).toEqual([]);
  });

  test("finds old messages of a joined group, and none of a group that the caller left", async () => {
    const chat = await groupOf(alice);
    const term = word();
    const sent = await say(alice, chat, term);
    await alice.call("addChatMembers", { chat_id: chat.id, usernames: [bob.username] });
    await using caller = await bob.via(transport);
    expect(await find(caller, { query: term })).toEqual([sent.id]);
    await bob.call("leaveChat", { chat_id: chat.id });
    expect(await find(caller, { query: term })).toEqual([]);
  });

  test("searches one conversation if one is given", async () => {
    const [one, other] = [await groupOf(alice, bob), await groupOf(alice, bob)];
    const term = word();
    const [here, there] = [await say(alice, one, term), await say(alice, other, term)];
    await using caller = await bob.via(transport);
    expect(await find(caller, { query: term })).toEqual([there.id, here.id]);
    expect(await find(caller, { query: term, chat_id: one.id })).toEqual([here.id]);
  });

  test("finds neither deleted messages nor messages that the caller has hidden", async () => {
    const chat = await groupOf(alice, bob);
    const term = word();
    const [one, two] = [await say(alice, chat, term), await say(alice, chat, term)];
    await using caller = await bob.via(transport);
    expect(await find(caller, { query: term })).toEqual([two.id, one.id]);
    await alice.call("deleteMessages", { chat_id: chat.id, message_ids: [one.id] });
    await bob.call("deleteMessagesForMe", { chat_id: chat.id, message_ids: [two.id] });
    expect(await find(caller, { query: term })).toEqual([]);
    expect(await find(alice, { query: term })).toEqual([two.id]);
  });

  test("finds an edited message by its new text only", async () => {
    const chat = await groupOf(alice, bob);
    const [before, after] = [word(), word()];
    const { id: message_id } = await say(alice, chat, before);
    await using caller = await bob.via(transport);
    expect(await find(caller, { query: before })).toEqual([message_id]);
    await alice.call("editMessage", { message_id, content: after });
    expect(await find(caller, { query: before })).toEqual([]);
    expect(await find(caller, { query: after })).toEqual([message_id]);
  });

  test("returns pages, newest first", async () => {
    const chat = await groupOf(alice, bob);
    const term = word();
    const sent: string[] = [];
    for (let n = 0; n < 5; n++) sent.unshift((await say(alice, chat, `${n} ${term}`)).id);
    await using caller = await bob.via(transport);
    const pages = await pagesOf((place) => search(caller, { query: term, limit: 2, ...place }));
    expect(pages.map((page) => page.length)).toEqual([2, 2, 1]);
    expect(pages.flat().map(({ message }) => message.id)).toEqual(sent);
  });

  test.each([
    ["accents", "crème brûlée", "creme brulee"],
    ["another script", "Привет, мир", "привет"],
    ["punctuation around the words", "(well-known)", "known"],
  ])("finds words with %s", async (_, content, query) => {
    const chat = await groupOf(alice, bob);
    const { id } = await say(alice, chat, content);
    await using caller = await bob.via(transport);
    expect(await find(caller, { query, chat_id: chat.id })).toEqual([id]);
  });

  test.each(['"', "*", "NOT", "a OR b", 'chat : ("c1")', "content:x", "((", "-", "🙂", "\u0301"])(
    "takes %j as words, not as a query language",
    async (query) => {
      const chat = await groupOf(alice, bob);
      await say(alice, chat, "hello");
      await using caller = await bob.via(transport);
      expect(await find(caller, { query, chat_id: chat.id })).toEqual([]);
    },
  );

  test("refuses an empty query and a forged cursor", async () => {
    await using caller = await bob.via(transport);
    const empty = await failure(find(caller, { query: "" }));
    expect(empty.parameters?.fields).toHaveProperty("query");
    const made = await failure(find(caller, { query: "x", cursor: "nonsense" }));
    expect(made.parameters?.fields).toHaveProperty("cursor");
  });

  test("is 404 for an unknown conversation and 403 for one of other people", async () => {
    const chat = await groupOf(alice, bob);
    await using stranger = await carol.via(transport);
    const refusal = (chat_id: string) => failure(find(stranger, { query: "hello", chat_id }));
    expect((await refusal(Bun.randomUUIDv7())).code).toBe("not_found");
    expect((await refusal(chat.id)).code).toBe("forbidden");
  });
});
