import { describe, expect, test } from "bun:test";
import type { EventName } from "@parley/protocol";
import {
  failure,
  groupOf,
  pagesOf,
  people,
  type Socket,
  say,
  TIMESTAMP,
  transports,
} from "@parley/testkit/client.ts";
import { limits, startServer } from "@parley/testkit/server.ts";
import { sharedServer } from "@parley/testkit/shared-server.ts";

const server = await sharedServer();
const [alice, bob, carol] = await people(server.url, "alice", "bob", "carol");
/** A message of Alice's that Bob can see. */
async function written() {
  const chat = await groupOf(alice, bob);
  const { id: message_id, seq } = await say(alice, chat, "hello");
  return { chat, message_id, seq, react: { message_id, emoji: "👍" } };
}

/** The reactions to a message, and the number of events of that name. */
const state = async (message_id: string, socket: Socket, event: EventName) => ({
  reactions: (await bob.call("getMessage", { message_id })).reactions,
  events: (await socket.settledEvents(event)).length,
});

describe.each(transports)("setMessageReaction over %s", (transport) => {
  test("adds a reaction and returns it", async () => {
    const { message_id, react } = await written();
    await using caller = await bob.via(transport);
    expect(await caller.call("setMessageReaction", react)).toEqual({
      message_id,
      reactor: bob.account,
      emoji: "👍",
      created_at: expect.stringMatching(TIMESTAMP),
    });
  });

  test("toggles: the second call removes the reaction and returns only ok, the third adds it", async () => {
    const { message_id, react } = await written();
    await using caller = await bob.via(transport);
    const reactions = async () => (await bob.call("getMessage", { message_id })).reactions;
    await caller.call("setMessageReaction", react);
    expect(await reactions()).toEqual([{ emoji: "👍", count: 1, reacted: true }]);
    expect(await caller.call("setMessageReaction", { ...react, remove: false })).toBeUndefined();
    expect(await reactions()).toEqual([]);
    expect(await caller.call("setMessageReaction", react)).toMatchObject({ emoji: "👍" });
  });

  test("removes with remove, and does nothing if there is nothing to remove", async () => {
    const { message_id, react } = await written();
    await using caller = await bob.via(transport);
    await using reader = await alice.connect();
    await caller.call("setMessageReaction", react);
    for (let times = 0; times < 2; times++) {
      expect(await caller.call("setMessageReaction", { ...react, remove: true })).toBeUndefined();
      expect(await state(message_id, reader, "events.reactionRemoved")).toEqual({
        reactions: [],
        events: 1,
      });
    }
  });

  test("announces added and removed reactions to the participants only", async () => {
    const { chat, message_id, seq, react } = await written();
    await using caller = await bob.via(transport);
    await using own = await bob.connect();
    await using reader = await alice.connect();
    await using outsider = await carol.connect();
    const added = await caller.call("setMessageReaction", react);
    await caller.call("setMessageReaction", react);
    for (const socket of [own, reader]) {
      await socket.settled();
      expect(socket.events.slice(1)).toEqual([
        {
          method: "events.reactionAdded",
          params: added as never,
          at: { conversation_id: chat.id, seq: seq + 1 },
        },
        {
          method: "events.reactionRemoved",
          params: { message_id, reactor: bob.account, emoji: "👍" },
          at: { conversation_id: chat.id, seq: seq + 2 },
        },
      ]);
    }
    expect(await outsider.settledButAccounts()).toHaveLength(1);
  });

  test("counts reactions by emoji, once for each person", async () => {
    const { message_id, react } = await written();
    await using caller = await bob.via(transport);
    await alice.call("setMessageReaction", react);
    await caller.call("setMessageReaction", react);
    await caller.call("setMessageReaction", { message_id, emoji: "🎉" });
    await alice.call("setMessageReaction", { ...react, remove: true });
    const seenBy = async (person: typeof alice) =>
      (await person.call("getMessage", { message_id })).reactions;
    expect(await seenBy(bob)).toEqual([
      { emoji: "👍", count: 1, reacted: true },
      { emoji: "🎉", count: 1, reacted: true },
    ]);
    expect((await seenBy(alice)).map(({ reacted }) => reacted)).toEqual([false, false]);
  });

  test("raises the message's version, and keeps its seq", async () => {
    const { message_id, seq, react } = await written();
    await using caller = await bob.via(transport);
    await caller.call("setMessageReaction", react);
    const message = await bob.call("getMessage", { message_id });
    expect(message).toMatchObject({ seq, version: seq + 1, edited_at: null });
  });
});

describe.each(transports)("reactions.add and reactions.remove over %s", (transport) => {
  test("do not toggle: adding an existing reaction returns it and emits nothing", async () => {
    const { message_id, react } = await written();
    await using caller = await bob.via(transport);
    await using reader = await alice.connect();
    const first = await caller.call("addReaction", react);
    expect(await caller.call("addReaction", react)).toEqual(first);
    expect(await state(message_id, reader, "events.reactionAdded")).toEqual({
      reactions: [{ emoji: "👍", count: 1, reacted: true }],
      events: 1,
    });
  });

  test("do not toggle: removing an absent reaction returns ok and emits nothing", async () => {
    const { message_id, seq, react } = await written();
    await using caller = await bob.via(transport);
    await using reader = await alice.connect();
    await caller.call("removeReaction", react);
    const nothing = { reactions: [], events: 0 };
    expect(await state(message_id, reader, "events.reactionAdded")).toEqual(nothing);
    expect(await state(message_id, reader, "events.reactionRemoved")).toEqual(nothing);
    await caller.call("addReaction", react);
    await caller.call("removeReaction", react);
    const { at } = await reader.event("events.reactionRemoved");
    expect(at?.seq).toBe(seq + 2);
  });

  test("add one reaction for concurrent calls", async () => {
    const { message_id, react } = await written();
    await using caller = await bob.via(transport);
    await Promise.all(Array.from({ length: 8 }, () => caller.call("addReaction", react)));
    const { reactions, version, seq } = await bob.call("getMessage", { message_id });
    expect(reactions).toEqual([{ emoji: "👍", count: 1, reacted: true }]);
    expect(version).toBe(seq + 1);
  });
});

describe.each(["setMessageReaction", "addReaction", "removeReaction"] as const)(
  "%s",
  (operation) => {
    test.each(transports)(
      "is 404 for no message and 403 for one of others over %s",
      async (transport) => {
        const { message_id } = await written();
        await using stranger = await carol.via(transport);
        const react = (id: string) =>
          failure(stranger.call(operation, { message_id: id, emoji: "👍" }));
        expect((await react(Bun.randomUUIDv7())).code).toBe("not_found");
        expect((await react(message_id)).code).toBe("forbidden");
      },
    );

    test.each(transports)("is 404 for a deleted message over %s", async (transport) => {
      const { chat, message_id, react } = await written();
      await alice.call("deleteMessages", { chat_id: chat.id, message_ids: [message_id] });
      await using caller = await bob.via(transport);
      expect((await failure(caller.call(operation, react))).code).toBe("not_found");
    });
  },
);

describe.each(transports)("getMessageReactions over %s", (transport) => {
  test("lists who reacted with which emoji, page by page, for participants only", async () => {
    const { chat, message_id } = await written();
    for (const [who, emoji] of [
      [alice, "🎉"],
      [bob, "👍"],
      [alice, "👍"],
    ] as const) {
      await who.call("addReaction", { message_id, emoji });
    }
    await using caller = await bob.via(transport);
    const pages = await pagesOf((cursor) =>
      caller.call("getMessageReactions", { message_id, limit: 2, ...cursor }),
    );
    const pairs = pages.map((page) => page.map(({ reactor, emoji }) => [reactor, emoji]));
    expect(pairs).toEqual([
      [
        [alice.account, "🎉"],
        [bob.account, "👍"],
      ],
      [[alice.account, "👍"]],
    ]);
    const { items } = await caller.call("getMessageReactions", { message_id, emoji: "🎉" });
    expect(items.map(({ reactor }) => reactor)).toEqual([alice.account]);

    await using stranger = await carol.via(transport);
    const refused = await failure(stranger.call("getMessageReactions", { message_id }));
    expect(refused.code).toBe("forbidden");
    const strange = await failure(
      caller.call("getMessageReactions", { message_id, cursor: "strange" }),
    );
    expect(strange.parameters?.fields).toHaveProperty("cursor");
    await alice.call("deleteMessages", { chat_id: chat.id, message_ids: [message_id] });
    const gone = await failure(caller.call("getMessageReactions", { message_id }));
    expect(gone.code).toBe("not_found");
  });
});

describe("an emoji", () => {
  /** The emoji with escapes for its invisible characters. */
  const spelled = (emoji: string) =>
    JSON.stringify(emoji).replace(
      /\p{Cf}|\p{Mn}/gu,
      (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`,
    );
  const named = (...emoji: string[]) => emoji.map((each) => [spelled(each), each] as const);

  test.each(named("👍", "❤️", "👍🏽", "👩‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪", "🏴󠁧󠁢󠁳󠁣󠁴󠁿", "1️⃣", "🧑🏿‍🚀", "©️"))(
    "may be %s, of whatever length",
    async (_, emoji) => {
      const { message_id } = await written();
      const added = await bob.call("addReaction", { message_id, emoji });
      expect(added.emoji).toBe(emoji);
    },
  );

  const pairs: [bare: string, whole: string][] = [
    ["❤", "❤️"],
    ["☺", "☺️"],
    ["©", "©️"],
    ["1⃣", "1️⃣"],
    ["❤‍🔥", "❤️‍🔥"],
    ["🏳‍🌈", "🏳️‍🌈"],
    ["👁️‍🗨", "👁️‍🗨️"],
    ["🕵🏽‍♂", "🕵🏽‍♂️"],
    ["☝🏿", "☝🏿"],
  ];
  for (const [bare, whole] of pairs)
    test(`without its variation selector, ${spelled(bare)}, is the one with it`, async () => {
      const { message_id } = await written();
      const added = await bob.call("addReaction", { message_id, emoji: bare });
      expect(added.emoji).toBe(whole);
      expect(await bob.call("addReaction", { message_id, emoji: whole })).toEqual(added);
      await alice.call("setMessageReaction", { message_id, emoji: whole });
      const { reactions } = await bob.call("getMessage", { message_id });
      expect(reactions).toEqual([{ emoji: whole, count: 2, reacted: true }]);
      await bob.call("removeReaction", { message_id, emoji: bare });
      expect(await alice.call("setMessageReaction", { message_id, emoji: bare })).toBeUndefined();
      expect((await bob.call("getMessage", { message_id })).reactions).toEqual([]);
    });

  test.each(
    named(
      "",
      "❤\ufe0e",
      "👍\ufe0f",
      "❤❤",
      "a",
      "+1",
      ":thumbsup:",
      "1",
      "👍👍",
      "👍 ",
      " 👍",
      "👍a",
      "🇩",
      "\u200d",
      "\ufe0f",
      "👍\u200d👍",
    ),
  )("must be exactly one, not %s", async (_, emoji) => {
    const { message_id } = await written();
    for (const operation of ["setMessageReaction", "addReaction", "removeReaction"] as const) {
      const failed = await failure(bob.call(operation, { message_id, emoji }));
      expect(failed.code).toBe("bad_request");
      expect(failed.parameters?.fields).toHaveProperty("emoji");
    }
  });
});

describe("too many reactions to one message", () => {
  const emoji = ["👍", "❤️", "😂", "🎉", "👀", "🚀"];

  test("of one person are a conflict, until one is removed", async () => {
    await using server = await startServer(limits({ reactions_per_person: 3 }));
    const [ada, ben] = await people(server.url, "ada", "ben");
    const { id: message_id } = await say(ada, await groupOf(ada, ben), "hello");
    for (const one of emoji.slice(0, 3)) await ben.call("addReaction", { message_id, emoji: one });
    const fourth = { message_id, emoji: emoji[3] as string };
    for (const operation of ["addReaction", "setMessageReaction"] as const) {
      expect(await failure(ben.call(operation, fourth))).toMatchObject({ status: 409 });
    }
    await ada.call("addReaction", fourth);
    await ben.call("removeReaction", { message_id, emoji: emoji[0] as string });
    expect((await ben.call("addReaction", fourth)).emoji).toBe(fourth.emoji);
  });

  test("with different emoji are a conflict, while existing ones can be added", async () => {
    await using server = await startServer(limits({ reactions_per_message: 4 }));
    const [ada, ben] = await people(server.url, "ada", "ben");
    const { id: message_id } = await say(ada, await groupOf(ada, ben), "hello");
    for (const one of emoji.slice(0, 4)) await ben.call("addReaction", { message_id, emoji: one });
    const fifth = { message_id, emoji: emoji[4] as string };
    expect(await failure(ada.call("setMessageReaction", fifth))).toMatchObject({
      status: 409,
      code: "conflict",
    });
    expect(await ada.call("addReaction", { message_id, emoji: "👍" })).toMatchObject({
      emoji: "👍",
    });
  });
});
