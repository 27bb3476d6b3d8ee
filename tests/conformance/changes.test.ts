import { describe, expect, test } from "bun:test";
import type { ConversationChange } from "@parley/protocol";
import {
  agentOf,
  type Caller,
  groupOf,
  type Person,
  people,
  say,
  TIMESTAMP,
  transports,
} from "@parley/testkit/client.ts";
import { sharedServer } from "@parley/testkit/shared-server.ts";

const server = await sharedServer();
const [alice, bob, carol, dave] = await people(server.url, "alice", "bob", "carol", "dave");
const claude = { username: agentOf(alice) };
const names = (accounts: readonly { username: string }[]) =>
  accounts.map(({ username }) => username);

/** A change without its seq and time. */
const told = ({ kind, actor, subjects, title, always_on }: ConversationChange) => [
  kind,
  actor.username,
  names(subjects),
  title ?? always_on,
];

const historyOf = async (person: Pick<Caller, "call">, chat: { id: string }) =>
  (await person.call("getChatHistory", { chat_id: chat.id })).changes;

describe.each(transports)("changes of a group over %s", (transport) => {
  const changes: [
    name: string,
    make: (chat_id: string, as: (person: Person) => Promise<Caller>) => Promise<unknown>,
    expected: ReturnType<typeof told>[],
  ][] = [
    [
      "somebody is added",
      async (chat_id, as) =>
        (await as(bob)).call("addChatMembers", { chat_id, usernames: [dave.username] }),
      [["added", bob.username, [dave.username], null]],
    ],
    [
      "somebody leaves",
      async (chat_id, as) => (await as(carol)).call("leaveChat", { chat_id }),
      [["left", carol.username, [carol.username], null]],
    ],
    [
      "the admin leaves with an agent, and hands the group over",
      async (chat_id, as) => (await as(alice)).call("leaveChat", { chat_id }),
      [
        ["left", alice.username, [alice.username, claude.username], null],
        ["admin_changed", alice.username, [bob.username], null],
      ],
    ],
    [
      "somebody is removed",
      async (chat_id, as) =>
        (await as(alice)).call("removeChatMember", { chat_id, username: bob.username }),
      [["removed", alice.username, [bob.username], null]],
    ],
    [
      "the group is renamed",
      async (chat_id, as) => (await as(bob)).call("setChatTitle", { chat_id, title: "Plans" }),
      [["renamed", bob.username, [], "Plans"]],
    ],
    [
      "an agent is removed",
      async (chat_id, as) =>
        (await as(alice)).call("removeGroupAgent", { chat_id, agent_username: claude.username }),
      [["removed", alice.username, [claude.username], null]],
    ],
    [
      "an agent is added",
      async (chat_id, as) =>
        (await as(bob)).call("addGroupAgent", { chat_id, agent_username: agentOf(bob) }),
      [["added", bob.username, [agentOf(bob)], null]],
    ],
    [
      "an agent is added as always on",
      async (chat_id, as) =>
        (await as(bob)).call("addGroupAgent", {
          chat_id,
          agent_username: agentOf(bob),
          always_on: true,
        }),
      [
        ["added", bob.username, [agentOf(bob)], null],
        ["mode_changed", bob.username, [agentOf(bob)], true],
      ],
    ],
    [
      "an agent's mode changes",
      async (chat_id, as) => {
        const caller = await as(alice);
        const agent = { chat_id, agent_username: claude.username };
        await caller.call("setGroupAgentMode", { ...agent, always_on: true });
        await caller.call("setGroupAgentMode", { ...agent, always_on: true });
        await caller.call("setGroupAgentMode", { ...agent, always_on: false });
      },
      [
        ["mode_changed", alice.username, [claude.username], true],
        ["mode_changed", alice.username, [claude.username], false],
      ],
    ],
  ];

  test.each(changes)("that %s is counted, announced and stored", async (_name, make, expected) => {
    const chat = await groupOf(alice, bob, carol, claude);
    // A member who stays in the group.
    const member =
      expected.flat().includes("left") && expected[0]?.[1] === carol.username ? bob : carol;
    await using reader = await member.connect();
    const callers: Caller[] = [];
    await make(chat.id, async (person) => {
      const caller = await person.via(transport);
      callers.push(caller);
      return caller;
    });
    // On several nodes, an event of an earlier test may arrive late.
    const received = (await reader.settledEvents("events.conversationUpdated")).filter(
      ({ params }) => params.id === chat.id,
    );
    const shown = received.flatMap(({ params }) => params.changes);
    expect(shown.map(told)).toEqual(expected);
    for (const { params, at } of received) {
      expect(params.changes.every(({ seq }) => seq === at?.seq)).toBe(true);
    }
    for (const { at } of shown) expect(at).toMatch(TIMESTAMP);
    expect(received.at(-1)?.at?.seq).toBe((await member.call("getChat", { chat_id: chat.id })).seq);
    expect(await historyOf(member, chat)).toEqual(shown);
    expect(
      await member.call("getUpdates", { chat_id: chat.id, since_seq: chat.seq }),
    ).toMatchObject({ messages: [], changes: shown });
    for (const caller of callers) await caller[Symbol.asyncDispose]();
  });

  test("are part of the history: adjacent pages together contain all of them", async () => {
    const chat = await groupOf(alice, bob);
    await using caller = await bob.via(transport);
    const rename = (title: string) => alice.call("setChatTitle", { chat_id: chat.id, title });
    const places: number[] = [];
    await rename("t0");
    for (let n = 1; n <= 6; n++) {
      places.push((await say(alice, chat, `m${n}`)).seq);
      await rename(`t${n}`);
    }
    const page = async (input: object) => {
      const found = await caller.call("getChatHistory", { chat_id: chat.id, ...input });
      return {
        items: found.items,
        texts: found.items.map(({ content }) => content),
        titles: found.changes.map(({ title }) => title),
      };
    };
    const all = await page({});
    expect(all.titles).toEqual(["t0", "t1", "t2", "t3", "t4", "t5", "t6"]);
    const latest = await page({ limit: 2 });
    expect([latest.texts, latest.titles]).toEqual([
      ["m5", "m6"],
      ["t5", "t6"],
    ]);
    const middle = await page({ limit: 2, before: latest.items[0]?.id });
    expect([middle.texts, middle.titles]).toEqual([
      ["m3", "m4"],
      ["t3", "t4"],
    ]);
    const oldest = await page({ limit: 2, before: middle.items[0]?.id });
    expect([oldest.texts, oldest.titles]).toEqual([
      ["m1", "m2"],
      ["t0", "t1", "t2"],
    ]);
    const single = await page({ limit: 1, around: middle.items[1]?.id });
    expect([single.texts, single.titles]).toEqual([["m4"], []]);
    const newer = await page({ limit: 2, after: oldest.items[0]?.id });
    expect([newer.texts, newer.titles]).toEqual([
      ["m2", "m3"],
      ["t1", "t2"],
    ]);
    const end = await page({ limit: 5, after: middle.items[0]?.id });
    expect([end.texts, end.titles]).toEqual([
      ["m4", "m5", "m6"],
      ["t3", "t4", "t5", "t6"],
    ]);
    const around = await page({ limit: 3, around: middle.items[0]?.id });
    expect([around.texts, around.titles]).toEqual([
      ["m2", "m3", "m4"],
      ["t2", "t3"],
    ]);
  });

  test("are visible to participants only, including new ones, with current names", async () => {
    const chat = await groupOf(alice, bob);
    const [eve] = await people(server.url, "eve");
    await eve.call("updateMe", { display_name: "Before" });
    await alice.call("addChatMembers", { chat_id: chat.id, usernames: [eve.username] });
    await eve.call("updateMe", { display_name: "After" });
    await using caller = await eve.via(transport);
    expect(await historyOf(caller, chat)).toMatchObject([
      { kind: "added", actor: alice.account, subjects: [{ display_name: "After" }] },
    ]);
    await alice.call("removeChatMember", { chat_id: chat.id, username: eve.username });
    await expect(historyOf(caller, chat)).rejects.toMatchObject({ code: "forbidden" });
  });
});
