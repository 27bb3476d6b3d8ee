import { describe, expect, test } from "bun:test";
import { type Caller, failure, groupOf, people, say, transports } from "@parley/testkit/client.ts";
import { sharedServer } from "@parley/testkit/shared-server.ts";

const server = await sharedServer();
const [alice, bob, carol] = await people(server.url, "alice", "bob", "carol");
/** A group with the messages "1", "2", … */
async function talk(messages: number) {
  const chat = await groupOf(alice, bob);
  const ids: string[] = [];
  for (let n = 1; n <= messages; n++) ids.push((await say(alice, chat, `${n}`)).id);
  return { chat_id: chat.id, id: (n: number) => ids[n - 1] as string };
}

const long = talk(120);
const short = talk(9);

type Page = Parameters<typeof alice.call<"getChatHistory">>[1];

describe.each(transports)("getChatHistory over %s", (transport) => {
  const read = async (page: Page, caller: Caller) => {
    const { items, has_more } = await caller.call("getChatHistory", page);
    return { items: items.map(({ content }) => Number(content)), has_more };
  };
  const range = (from: number, to: number) =>
    Array.from({ length: to - from + 1 }, (_, index) => from + index);

  test("returns the latest 50, oldest first, with has_more", async () => {
    const { chat_id } = await long;
    await using caller = await bob.via(transport);
    expect(await read({ chat_id }, caller)).toEqual({ items: range(71, 120), has_more: true });
  });

  test("returns at most 100, whatever the limit", async () => {
    const { chat_id } = await long;
    await using caller = await bob.via(transport);
    const page = await read({ chat_id, limit: 1_000_000 }, caller);
    expect(page).toEqual({ items: range(21, 120), has_more: true });
  });

  test("pages back to the first message with before", async () => {
    const { chat_id, id } = await long;
    await using caller = await bob.via(transport);
    const older = await read({ chat_id, before: id(71), limit: 60 }, caller);
    expect(older).toEqual({ items: range(11, 70), has_more: true });
    const oldest = await read({ chat_id, before: id(11) }, caller);
    expect(oldest).toEqual({ items: range(1, 10), has_more: false });
    const none = await read({ chat_id, before: id(1) }, caller);
    expect(none).toEqual({ items: [], has_more: false });
  });

  test("pages forward to the last message with after, oldest first", async () => {
    const { chat_id, id } = await long;
    await using caller = await bob.via(transport);
    const newer = await read({ chat_id, after: id(10), limit: 3 }, caller);
    expect(newer).toEqual({ items: [11, 12, 13], has_more: true });
    const newest = await read({ chat_id, after: id(117), limit: 3 }, caller);
    expect(newest).toEqual({ items: [118, 119, 120], has_more: false });
  });

  test("shows a message among its neighbours with around", async () => {
    const { chat_id, id } = await short;
    await using caller = await bob.via(transport);
    const middle = await read({ chat_id, around: id(5), limit: 5 }, caller);
    expect(middle).toEqual({ items: [3, 4, 5, 6, 7], has_more: true });
    const whole = await read({ chat_id, around: id(5) }, caller);
    expect(whole).toEqual({ items: range(1, 9), has_more: false });
    const alone = await read({ chat_id, around: id(5), limit: 1 }, caller);
    expect(alone.items).toEqual([5]);
  });

  test("accepts the id of a deleted message", async () => {
    const { chat_id, id } = await talk(5);
    await alice.call("deleteMessages", { chat_id, message_ids: [id(3)] });
    await using caller = await bob.via(transport);
    expect((await read({ chat_id, before: id(3) }, caller)).items).toEqual([1, 2]);
    expect((await read({ chat_id, after: id(3) }, caller)).items).toEqual([4, 5]);
    expect((await read({ chat_id, around: id(3) }, caller)).items).toEqual([1, 2, 4, 5]);
  });

  test("returns complete messages, with the caller's own reactions", async () => {
    const { chat_id, id } = await talk(1);
    await bob.call("addReaction", { message_id: id(1), emoji: "👍" });
    await using caller = await bob.via(transport);
    const { items } = await caller.call("getChatHistory", { chat_id });
    expect(items).toEqual([await bob.call("getMessage", { message_id: id(1) })]);
    expect(items[0]?.reactions).toEqual([{ emoji: "👍", count: 1, reacted: true }]);
  });

  test("is empty in a new conversation", async () => {
    const { chat_id } = await talk(0);
    await using caller = await bob.via(transport);
    expect(await read({ chat_id }, caller)).toEqual({ items: [], has_more: false });
  });

  test("is 404 for an unknown message and one of another conversation", async () => {
    const { chat_id } = await short;
    const foreign = (await long).id(1);
    await using caller = await bob.via(transport);
    for (const anchor of [Bun.randomUUIDv7(), foreign]) {
      for (const direction of ["before", "after", "around"]) {
        const failed = await failure(read({ chat_id, [direction]: anchor }, caller));
        expect(failed.code).toBe("not_found");
      }
    }
  });

  test("is 404 for an unknown conversation and 403 for one of other people", async () => {
    const { chat_id } = await short;
    await using stranger = await carol.via(transport);
    expect((await failure(read({ chat_id: Bun.randomUUIDv7() }, stranger))).code).toBe("not_found");
    expect((await failure(read({ chat_id }, stranger))).code).toBe("forbidden");
  });

  test("refuses an invalid limit, and two directions at once", async () => {
    const { chat_id, id } = await short;
    await using caller = await bob.via(transport);
    for (const limit of [0, -1, 1.5]) {
      const failed = await failure(read({ chat_id, limit }, caller));
      expect(failed.parameters?.fields).toHaveProperty("limit");
    }
    const both = await failure(read({ chat_id, before: id(5), after: id(2) }, caller));
    expect(both.code).toBe("bad_request");
  });
});
