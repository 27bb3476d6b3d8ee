import { afterAll, describe, expect, test } from "bun:test";
import {
  failure,
  groupOf,
  type Person,
  people,
  type Socket,
  transports,
} from "@parley/testkit/client.ts";
import { noRates, startServer } from "@parley/testkit/server.ts";

const server = await startServer(noRates);
const [alice, bob, carol] = await people(server.url, "alice", "bob", "carol");
afterAll(() => server[Symbol.asyncDispose]());

const event = (conversation_id: string, { account }: Person, is_typing: boolean) => ({
  method: "events.typing" as const,
  params: { conversation_id, actor: account, is_typing },
});

/** What a socket has received of typing in these conversations: typing of earlier tests may still end. */
const typingIn = async (socket: Socket, ...chats: string[]) =>
  (await socket.settledEvents("events.typing")).filter(({ params }) =>
    chats.includes(params.conversation_id),
  );

/**
 * Makes the calls one after another, each after the reader has received the event of the one before:
 * typing events of several nodes are not ordered.
 */
async function inTurn(reader: Socket, ...calls: (() => Promise<unknown>)[]): Promise<void> {
  for (const call of calls) {
    await call();
    await reader.settled();
  }
}

describe.each(transports)("sendChatAction over %s", (transport) => {
  test("shows typing to everyone in the conversation except the sender", async () => {
    const { id: chat_id } = await groupOf(alice, bob);
    await using caller = await alice.via(transport);
    await using own = await alice.connect();
    await using reader = await bob.connect();
    await using outsider = await carol.connect();
    await caller.call("sendChatAction", { chat_id, action: "typing" });
    expect(await typingIn(reader, chat_id)).toEqual([event(chat_id, alice, true)]);
    expect(await own.settledEvents("events.typing")).toEqual([]);
    expect(await outsider.settledEvents("events.typing")).toEqual([]);
  });

  test.each([
    ["of another kind", "cancel"],
    ["that is not known", "upload_photo"],
    ["that is empty", ""],
    ["in capitals", "TYPING"],
    ["that is very long", "x".repeat(10_000)],
    ["with a null character", "nul\0"],
  ])("clears typing with an action %s", async (_, action) => {
    const { id: chat_id } = await groupOf(alice, bob);
    await using caller = await alice.via(transport);
    await using own = await alice.connect();
    await using reader = await bob.connect();
    await inTurn(
      reader,
      () => caller.call("sendChatAction", { chat_id, action: "typing" }),
      () => caller.call("sendChatAction", { chat_id, action }),
    );
    const expected = [event(chat_id, alice, true), event(chat_id, alice, false)];
    expect(await typingIn(reader, chat_id)).toEqual(expected);
    expect(await own.settledEvents("events.typing")).toEqual([]);
  });

  test("broadcasts every call, including repeated ones", async () => {
    const { id: chat_id } = await groupOf(alice, bob);
    await using caller = await alice.via(transport);
    await using reader = await bob.connect();
    const type = (action: string) => () => caller.call("sendChatAction", { chat_id, action });
    await inTurn(reader, ...["typing", "typing", "typing", "stop", "typing"].map(type));
    const shown = (await typingIn(reader, chat_id)).map(({ params }) => params.is_typing);
    expect(shown).toEqual([true, true, true, false, true]);
  });

  test("accepts is_typing in place of an action", async () => {
    const { id: chat_id } = await groupOf(alice, bob);
    await using caller = await alice.via(transport);
    await using reader = await bob.connect();
    const type = (is_typing: boolean) => () =>
      caller.call("sendChatAction", { chat_id, is_typing });
    await inTurn(reader, type(true), type(false));
    const shown = (await typingIn(reader, chat_id)).map(({ params }) => params.is_typing);
    expect(shown).toEqual([true, false]);
  });

  test("is separate for each conversation", async () => {
    const [one, other] = [await groupOf(alice, bob), await groupOf(alice, bob)];
    await using caller = await alice.via(transport);
    await using reader = await bob.connect();
    const type = (chat_id: string) => () =>
      caller.call("sendChatAction", { chat_id, action: "typing" });
    await inTurn(reader, type(one.id), type(other.id));
    expect(await typingIn(reader, one.id, other.id)).toEqual([
      event(one.id, alice, true),
      event(other.id, alice, true),
    ]);
  });

  test("is 404 for an unknown conversation, 403 for one of other people, 400 without an action", async () => {
    const { id } = await groupOf(alice, bob);
    await using reader = await bob.connect();
    await using stranger = await carol.via(transport);
    const type = (chat_id: string) =>
      failure(stranger.call("sendChatAction", { chat_id, action: "typing" }));
    expect((await type(Bun.randomUUIDv7())).code).toBe("not_found");
    expect((await type(id)).code).toBe("forbidden");
    expect(await typingIn(reader, id)).toEqual([]);
    const nothing = await failure(stranger.call("sendChatAction", { chat_id: id }));
    expect(nothing.parameters?.fields).toHaveProperty("action");
  });
});

describe("typing", () => {
  test("ends by itself if it is not renewed", async () => {
    const { id: chat_id } = await groupOf(alice, bob);
    await using reader = await bob.connect();
    await alice.call("sendChatAction", { chat_id, action: "typing" });
    await reader.settled();
    await server.moveClock(6000);
    expect(await typingIn(reader, chat_id)).toEqual([
      event(chat_id, alice, true),
      event(chat_id, alice, false),
    ]);
  });

  test("continues as long as it is renewed, and is sent to clients that connect meanwhile", async () => {
    const { id: chat_id } = await groupOf(alice, bob);
    await using reader = await bob.connect();
    const type = () => alice.call("sendChatAction", { chat_id, action: "typing" });
    for (let second = 0; second < 7; second++) {
      await type();
      await server.moveClock(1000);
    }
    await using newcomer = await bob.connect();
    await type();
    const here = async (socket: Socket) =>
      (await socket.settledEvents("events.typing")).filter(
        ({ params }) => params.conversation_id === chat_id,
      );
    expect(await here(newcomer)).toEqual([event(chat_id, alice, true)]);
    expect(await here(reader)).toEqual(
      Array.from({ length: 8 }, () => event(chat_id, alice, true)),
    );
  });

  test("ends when the sender's last socket closes, and not before", async () => {
    const { id: chat_id } = await groupOf(carol, bob);
    await using reader = await bob.connect();
    const [one, other] = [await carol.connect(), await carol.connect()];
    // The node of the first socket knows of the other one from here on.
    await one.settled();
    await one.call("sendChatAction", { chat_id, action: "typing" });
    await one.close();
    const here = async () =>
      (await reader.settledEvents("events.typing"))
        .filter(({ params }) => params.conversation_id === chat_id)
        .map(({ params }) => params.is_typing);
    expect(await here()).toEqual([true]);
    await other.close();
    await reader.event(
      "events.typing",
      (params) => params.conversation_id === chat_id && !params.is_typing,
    );
    expect(await here()).toEqual([true, false]);
  });

  test("does not raise the change counter", async () => {
    const chat = await groupOf(alice, bob);
    await alice.call("sendChatAction", { chat_id: chat.id, action: "typing" });
    expect((await bob.call("getChat", { chat_id: chat.id })).seq).toBe(chat.seq);
  });
});
