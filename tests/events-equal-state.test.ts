import { afterAll, beforeAll, describe, test } from "bun:test";
import type { Conversation } from "@parley/protocol";
import { Backend, serviceKeySetting } from "@parley/testkit/backend.ts";
import { CallFailed, type Person, signUp } from "@parley/testkit/client.ts";
import { pngOf, upload, uploadPicture } from "@parley/testkit/files.ts";
import { Watcher } from "@parley/testkit/model.ts";
import { rounds } from "@parley/testkit/rounds.ts";
import { onSeveralNodes, startServer, type TestServer } from "@parley/testkit/server.ts";
import fc from "fast-check";

/** A run takes longer on several nodes. */
const RANDOM_RUNS = onSeveralNodes ? 20 : rounds({ few: 20, all: 60 });

let server: TestServer;
let people: Person[];
beforeAll(async () => {
  server = await startServer({
    ...serviceKeySetting(),
    PARLEY_LIMITS: JSON.stringify({ messages_per_second: 0, operations_per_second: 0 }),
  });
  people = await Promise.all(["ann", "bob", "cat", "dan"].map((name) => signUp(server.url, name)));
});
afterAll(() => server[Symbol.asyncDispose]());

/** Runs an action, and checks that the events bring every client to the state of the server. */
async function verify(
  action: (chat: Conversation, watchers: readonly Watcher[]) => Promise<unknown>,
): Promise<void> {
  const [ann, bob, cat] = people as [Person, Person, Person, Person];
  const chat = await ann.call("startChat", {
    usernames: [bob.username, cat.username, `${ann.username}:claude`],
    title: "Group",
  });
  await ann.call("sendMessage", { chat_id: chat.id, content: `hello @${bob.username}` });
  await bob.call("sendMessage", { chat_id: chat.id, content: `hello @${ann.username}` });
  const watchers = await Promise.all(people.map((person) => Watcher.start(person)));
  try {
    await action(chat, watchers);
    for (const watcher of watchers) await watcher.check();
  } finally {
    for (const watcher of watchers) await watcher[Symbol.asyncDispose]();
    for (const person of people) {
      await person.call("leaveChat", { chat_id: chat.id }).catch(() => undefined);
      for (const { username } of people) {
        await person.call("unblockUser", { username }).catch(() => undefined);
      }
    }
  }
}

describe("initial fetch and events equal a fresh fetch", () => {
  const person = (place: number) => people[place] as Person;
  const lastMessage = (chat: Conversation) =>
    person(0)
      .call("getChatHistory", { chat_id: chat.id })
      .then(({ items }) => items.at(-1)?.id ?? "");
  /** The latest message of a person. */
  const lastOf = async (place: number, chat_id: string) => {
    const { items } = await person(0).call("getChatHistory", { chat_id });
    return items.findLast(({ sender }) => sender.username === person(place).username)?.id ?? "";
  };
  /** Imports messages of the second person that mention the first. */
  const importInto = ({ id }: Conversation, count: number) =>
    new Backend(server.url).call("importMessages", {
      chat_id: id,
      messages: Array.from({ length: count }, (_, n) => ({
        sender: person(1).username,
        content: `past ${n}, @${person(0).username}`,
        created_at: "2024-05-01T09:30:00.000Z",
        client_msg_id: `${n}`,
      })),
    });

  const changes: Record<string, (chat: Conversation) => Promise<unknown>> = {
    "after a message": ({ id }) => person(2).call("sendMessage", { chat_id: id, content: "hi" }),
    "after a mention": ({ id }) =>
      person(2).call("sendMessage", { chat_id: id, content: `see @${person(0).username}` }),
    "after an import": (chat) => importInto(chat, 3),
    "after a message and an import": async (chat) => {
      await person(1).call("sendMessage", { chat_id: chat.id, content: "hi" });
      await importInto(chat, 2);
    },
    "after an imported message was edited": async (chat) => {
      await importInto(chat, 2);
      const content = `edited, @${person(0).username}`;
      await person(1).call("editMessage", { message_id: await lastMessage(chat), content });
    },
    "after an imported message was deleted": async (chat) => {
      await importInto(chat, 2);
      const message_ids = [await lastMessage(chat)];
      await person(1).call("deleteMessages", { chat_id: chat.id, message_ids });
    },
    "after an imported message was hidden": async (chat) => {
      await importInto(chat, 2);
      const message_ids = [await lastMessage(chat)];
      await person(0).call("deleteMessagesForMe", { chat_id: chat.id, message_ids });
    },
    "after an edit": async (chat) =>
      person(1).call("editMessage", { message_id: await lastMessage(chat), content: "edited" }),
    "after a deletion": async (chat) =>
      person(1).call("deleteMessages", {
        chat_id: chat.id,
        message_ids: [await lastMessage(chat)],
      }),
    "after a deletion for oneself": async (chat) =>
      person(0).call("deleteMessagesForMe", {
        chat_id: chat.id,
        message_ids: [await lastMessage(chat)],
      }),
    "after a reaction": async (chat) =>
      person(2).call("setMessageReaction", { message_id: await lastMessage(chat), emoji: "👍" }),
    "after a reaction taken back": async (chat) => {
      const message_id = await lastMessage(chat);
      await person(2).call("setMessageReaction", { message_id, emoji: "👍" });
      await person(0).call("setMessageReaction", { message_id, emoji: "👍" });
      await person(2).call("setMessageReaction", { message_id, emoji: "👍" });
    },
    "after a component was used": async ({ id }) => {
      const content = '<button action="dismiss:x">No</button> <button action="go">Go</button>';
      const message = await person(1).call("sendMessage", { chat_id: id, content });
      for (const [place, action] of [
        [0, "dismiss:x"],
        [2, "go"],
        [0, "go"],
      ] as const) {
        const call = { chat_id: id, message_id: message.id, action };
        await person(place).call("sendComponentAction", call);
      }
      await person(0).call("updateMe", { display_name: `Ann ${Math.random()}` });
    },
    "after a message with files": ({ id }) => sendFiles(person(1), id, "two files", 2),
    "after a message with files alone was edited": async ({ id }) => {
      const message = await sendFiles(person(1), id, "", 1);
      await person(1).call("editMessage", { message_id: message.id, content: "with words" });
      await person(1).call("editMessage", { message_id: message.id, content: "" });
    },
    "after a message with files was deleted": async ({ id }) => {
      const [kept, deleted] = [
        await sendFiles(person(1), id, "kept", 1),
        await sendFiles(person(2), id, "", 2),
      ];
      await person(0).call("addReaction", { message_id: kept.id, emoji: "👍" });
      await person(2).call("deleteMessages", { chat_id: id, message_ids: [deleted.id] });
    },
    "after a message with files was hidden": async ({ id }) => {
      const message = await sendFiles(person(1), id, "", 1);
      await person(0).call("deleteMessagesForMe", { chat_id: id, message_ids: [message.id] });
    },
    "after messages of somebody who is blocked": async ({ id }) => {
      await person(0).call("blockUser", { username: person(1).username });
      await person(1).call("sendMessage", { chat_id: id, content: `see @${person(0).username}` });
      await person(2).call("sendMessage", { chat_id: id, content: "hi" });
      await person(1).call("deleteMessages", { chat_id: id, message_ids: [await lastOf(1, id)] });
    },
    "after somebody was blocked and unblocked": async ({ id }) => {
      await person(0).call("blockUser", { username: person(1).username });
      await person(1).call("sendMessage", { chat_id: id, content: "meanwhile" });
      await person(0).call("unblockUser", { username: person(1).username });
    },
    "after reading": ({ id }) => person(2).call("readChat", { chat_id: id, seq: 2 }),
    "after a change of the own view": async ({ id }) => {
      await person(0).call("setChatState", { chat_id: id, archived: true, notify: "mentions" });
      await person(0).call("setChatState", { chat_id: id, pinned: true });
    },
    "after the end of archives": async ({ id }) => {
      for (const place of [0, 1, 2]) {
        await person(place).call("setChatState", { chat_id: id, archived: true });
      }
      await person(2).call("sendMessage", { chat_id: id, content: "hi" });
    },
    "after messages became unread again": async ({ id }) => {
      await person(0).call("readChat", { chat_id: id, seq: 2 });
      await person(0).call("markUnread", { chat_id: id, seq: 0 });
      await person(2).call("sendMessage", { chat_id: id, content: `see @${person(0).username}` });
      await person(0).call("readChat", { chat_id: id, seq: 1 });
      await person(1).call("markUnread", { chat_id: id, seq: 1 });
    },
    "after a conversation was cleared": ({ id }) => person(0).call("clearChat", { chat_id: id }),
    "after a conversation was cleared and something new came": async (chat) => {
      const message_id = await lastMessage(chat);
      await person(0).call("clearChat", { chat_id: chat.id });
      await person(1).call("editMessage", { message_id, content: "edited" });
      await person(2).call("addReaction", { message_id, emoji: "👍" });
      await person(2).call("sendMessage", { chat_id: chat.id, content: "new" });
      await person(1).call("clearChat", { chat_id: chat.id });
      await person(2).call("setChatTitle", { chat_id: chat.id, title: "Renamed" });
    },
    "after the only new message was deleted": async (chat) => {
      await person(0).call("clearChat", { chat_id: chat.id });
      const { id } = await person(1).call("sendMessage", { chat_id: chat.id, content: "new" });
      await person(1).call("deleteMessages", { chat_id: chat.id, message_ids: [id] });
    },
    "after a conversation with an agent was erased": async () => {
      const usernames = [`${person(0).username}:claude`];
      const own = await person(0).call("startChat", { usernames, kind: "direct", new: true });
      await person(0).call("sendMessage", { chat_id: own.id, content: "hello" });
      await person(0).call("clearChat", { chat_id: own.id, erase: true });
    },
    "after a new title": ({ id }) =>
      person(1).call("setChatTitle", { chat_id: id, title: "Renamed" }),
    "after somebody joined": ({ id }) =>
      person(1).call("addChatMembers", { chat_id: id, usernames: [person(3).username] }),
    "after somebody was removed": ({ id }) =>
      person(0).call("removeChatMember", { chat_id: id, username: person(2).username }),
    "after an agent came, changed its mode and went": async ({ id }) => {
      const agent = { chat_id: id, agent_username: `${person(1).username}:claude` };
      await person(1).call("addGroupAgent", { ...agent, always_on: true });
      await person(1).call("setGroupAgentMode", { ...agent, always_on: false });
      await person(1).call("removeGroupAgent", agent);
      await person(1).call("updateMe", { display_name: `Bob ${Math.random()}` });
    },
    "after the admin left": ({ id }) => person(0).call("leaveChat", { chat_id: id }),
    "after somebody left and came back": async ({ id }) => {
      await person(1).call("leaveChat", { chat_id: id });
      await person(2).call("sendMessage", { chat_id: id, content: "meanwhile" });
      await person(0).call("addChatMembers", { chat_id: id, usernames: [person(1).username] });
    },
    "after a new direct conversation": async () => {
      const stranger = await signUp(server.url, "new");
      const { id } = await stranger.call("startChat", { usernames: [person(0).username] });
      await stranger.call("sendMessage", { chat_id: id, content: "nice to meet you" });
    },
    "after a change of name": () =>
      person(1).call("updateMe", { display_name: `Bob ${Math.random()}` }),
    "after an agent's change of name": () =>
      person(0).call("setAgentProfile", { provider: "claude", display_name: `C ${Math.random()}` }),
    "after further conversations with agents, their titles, and the end of an agent": async ({
      id,
    }) => {
      const name = `agent-${Bun.randomUUIDv7().slice(-12)}`;
      const made = { name, kind: "model", provider: "claude" } as const;
      const { username } = await person(1).call("createAgent", made);
      await person(1).call("addGroupAgent", { chat_id: id, agent_username: username });
      const start = (title?: string) =>
        person(1).call("startChat", { usernames: [username], kind: "direct", new: true, title });
      const [first] = [await start(), await start("Second")];
      await person(1).call("setChatTitle", { chat_id: first.id, title: "First" });
      await person(1).call("updateAgent", { agent_username: username, display_name: "Helper" });
      await person(1).call("deleteAgent", { agent_username: username });
    },
    "after new pictures": async ({ id }) => {
      await setPictures(person(1), id);
      await person(2).call("setChatPicture", { chat_id: id, file_id: null });
      await setPictures(person(2), id);
    },
    "after somebody read, left, and came back": async ({ id }) => {
      await person(1).call("readChat", { chat_id: id, seq: 2 });
      await person(1).call("leaveChat", { chat_id: id });
      await person(0).call("addChatMembers", { chat_id: id, usernames: [person(1).username] });
      await person(0).call("sendMessage", { chat_id: id, content: "welcome back" });
    },
  };
  for (const [name, change] of Object.entries(changes)) test(name, () => verify(change));

  test("after an edit of a message that was hidden before the client started", () =>
    verify(async (chat, watchers) => {
      const message_id = await lastMessage(chat);
      await person(0).call("deleteMessagesForMe", { chat_id: chat.id, message_ids: [message_id] });
      await watchers[0]?.startAnother("history");
      await person(1).call("editMessage", { message_id, content: "edited" });
    }));

  test("after news in conversations that were cleared before the client started", () =>
    verify(async ({ id }, watchers) => {
      await person(0).call("clearChat", { chat_id: id });
      await person(1).call("clearChat", { chat_id: id });
      for (const watcher of watchers) await watcher.startAnother("history");
      await person(2).call("sendMessage", { chat_id: id, content: "new" });
      await person(1).call("clearChat", { chat_id: id });
    }));

  test("after changes to messages whose history page is still in flight", () =>
    verify(async (chat, watchers) => {
      await watchers[0]?.startAnother("history");
      const message_id = await lastMessage(chat);
      await person(1).call("editMessage", { message_id, content: "edited" });
      await person(2).call("addReaction", { message_id, emoji: "👍" });
    }));

  test("after a deletion while the history of somebody who came back is still in flight", () =>
    verify(async (chat, watchers) => {
      const { username } = person(2);
      await person(0).call("removeChatMember", { chat_id: chat.id, username });
      await person(0).call("addChatMembers", { chat_id: chat.id, usernames: [username] });
      await watchers[2]?.fetchLate();
      const message_ids = [await lastMessage(chat)];
      await person(1).call("deleteMessages", { chat_id: chat.id, message_ids });
    }));

  test("after changes to conversations that the client does not know yet", () =>
    verify(async ({ id }, watchers) => {
      for (const watcher of watchers) await watcher.startAnother("everything");
      await person(1).call("setChatTitle", { chat_id: id, title: "Renamed" });
      await person(0).call("removeChatMember", { chat_id: id, username: person(2).username });
    }));
});

/** Gives a person and a group new pictures. */
async function setPictures(who: Person, chat_id: string): Promise<void> {
  await who.call("setAvatar", { file_id: (await uploadPicture(who)).id });
  await who.call("setChatPicture", { chat_id, file_id: (await uploadPicture(who)).id });
}

/** Sends a message with some files, the first of them a picture. */
async function sendFiles(who: Person, chat_id: string, content: string, count: number) {
  const file_ids: string[] = [];
  for (let sent = 0; sent < count; sent++) {
    const bytes = sent === 0 ? await pngOf() : `file ${sent}`;
    file_ids.push((await upload(who, chat_id, `file ${sent}`, bytes)).id);
  }
  return who.call("sendMessage", { chat_id, content, file_ids });
}

/** What a step sets of the own view. */
const VIEWS = [
  { archived: true },
  { archived: true, notify: "none" },
  { archived: true, muted_until: "2999-01-01T00:00:00.000Z" },
  { archived: false },
  { notify: "all", muted_until: null },
  { notify: "mentions", pinned: true },
  { pinned: false },
] as const;

interface Step {
  kind: string;
  actor: number;
  other: number;
  pick: number;
  text: string;
}

const step: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom(
    ...["send", "send", "send", "mention", "reply", "edit", "delete", "hide", "react", "react"],
    ...["files", "files", "strip"],
    ...["read", "title", "add", "remove", "leave", "button", "press", "mode"],
    ...["name", "name", "agentName", "picture", "ask", "ask", "start", "block", "unblock"],
    ...["view", "view", "clear", "clear", "unread", "unread", "erase"],
  ),
  actor: fc.nat(3),
  other: fc.nat(3),
  pick: fc.nat(50),
  text: fc.string({ unit: "grapheme", minLength: 1, maxLength: 20 }).map((text) => `m ${text}`),
});

/** Performs a step. A step that the server forbids changes nothing. */
async function perform(
  chat_id: string,
  watchers: readonly Watcher[],
  { kind, actor, other, pick, text }: Step,
): Promise<void> {
  if (kind === "ask") return watchers[other]?.fetchLate();
  if (kind === "start") return watchers[other]?.startAnother(pick % 2 ? "history" : "everything");
  const who = people[actor] as Person;
  const username = (people[other] as Person).username;
  const { items } = await who.call("getChatHistory", { chat_id });
  const target = items[pick % Math.max(items.length, 1)];
  const message_id = target?.id ?? Bun.randomUUIDv7();
  const few = items.slice(pick % 5, (pick % 5) + 3).map(({ id }) => id);
  const message_ids = few.length > 0 ? few : [message_id];
  const steps: Record<string, () => Promise<unknown>> = {
    send: () => who.call("sendMessage", { chat_id, content: text }),
    files: () => sendFiles(who, chat_id, pick % 2 ? text : "", 1 + (pick % 3)),
    strip: () =>
      who.call("editMessage", {
        message_id: items.findLast(({ files }) => files.length > 0)?.id ?? message_id,
        content: "",
      }),
    mention: () => who.call("sendMessage", { chat_id, content: `${text} @${username}` }),
    reply: () => who.call("sendMessage", { chat_id, content: text, reply_to_id: message_id }),
    edit: () => who.call("editMessage", { message_id, content: `${text} @${username}` }),
    delete: () => who.call("deleteMessages", { chat_id, message_ids }),
    hide: () => who.call("deleteMessagesForMe", { chat_id, message_ids }),
    button: () => who.call("sendMessage", { chat_id, content: '<button action="go">Go</button>' }),
    press: () =>
      who.call("sendComponentAction", {
        chat_id,
        message_id: items.findLast(({ content }) => content.includes("<button"))?.id ?? message_id,
        action: ["go", "dismiss:x"][pick % 2] ?? "go",
      }),
    react: () =>
      who.call("setMessageReaction", { message_id, emoji: ["👍", "🎉", "❤️"][pick % 3] ?? "👍" }),
    read: () => who.call("readChat", { chat_id, seq: pick }),
    title: () => who.call("setChatTitle", { chat_id, title: text }),
    add: () => who.call("addChatMembers", { chat_id, usernames: [username] }),
    remove: () => who.call("removeChatMember", { chat_id, username }),
    leave: () => who.call("leaveChat", { chat_id }),
    mode: async () => {
      const agent = { chat_id, agent_username: `${who.username}:claude` };
      await who.call("addGroupAgent", { ...agent, always_on: true });
      await who.call("setGroupAgentMode", { ...agent, always_on: false });
    },
    view: () => who.call("setChatState", { chat_id, ...VIEWS[pick % VIEWS.length] }),
    clear: () => who.call("clearChat", { chat_id }),
    unread: () => who.call("markUnread", { chat_id, seq: pick }),
    erase: () => who.call("clearChat", { chat_id, erase: true }),
    block: () => who.call("blockUser", { username }),
    unblock: () => who.call("unblockUser", { username }),
    name: () => who.call("updateMe", { display_name: text }),
    picture: () => setPictures(who, chat_id),
    agentName: () => who.call("setAgentProfile", { provider: "claude", display_name: text }),
  };
  await steps[kind]?.();
}

test("random steps of several people leave every client with the state of the server", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 30 }), (steps) =>
      verify(async ({ id }, watchers) => {
        for (const each of steps) {
          await perform(id, watchers, each).catch((error) => {
            const expected = error instanceof CallFailed && error.code !== "internal";
            if (!expected) throw error;
          });
        }
      }),
    ),
    { numRuns: RANDOM_RUNS, endOnFailure: true },
  );
});
