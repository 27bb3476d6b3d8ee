import { describe, expect, test } from "bun:test";
import {
  agentOf,
  type Caller,
  failure,
  groupOf,
  outcome,
  type Person,
  people,
  type Transport,
  transports,
} from "@parley/testkit/client.ts";
import { limits, noRates, startServer } from "@parley/testkit/server.ts";
import { sharedServer } from "@parley/testkit/shared-server.ts";

const server = await sharedServer();
const [alice, bob, carol] = await people(server.url, "alice", "bob", "carol");
const accountOf = (person: Person, provider = "claude") => ({
  username: agentOf(person, provider),
  kind: "agent" as const,
  display_name: `${person.username}'s ${provider === "claude" ? "Claude" : "GPT"}`,
  version: 0,
});

const agentsIn = async (caller: Pick<Person, "call">, chat: { id: string }) =>
  (await caller.call("getGroupAgents", { chat_id: chat.id })).items;

/** A group of alice and bob, with a caller of alice's on the given transport. */
async function newGroup(transport: Transport) {
  const chat = await groupOf(alice, bob);
  const caller: Caller = await alice.via(transport);
  const target = { chat_id: chat.id, agent_username: agentOf(alice) };
  return { chat, caller, target, [Symbol.asyncDispose]: () => caller[Symbol.asyncDispose]() };
}

describe.each(transports)("getGroupAgents over %s", (transport) => {
  test("lists the agents with their modes, in the order in which they joined", async () => {
    await using group = await newGroup(transport);
    const { chat, caller } = group;
    expect(await agentsIn(caller, chat)).toEqual([]);
    const add = (person: Person, provider: string, always_on: boolean) =>
      person.call("addGroupAgent", {
        chat_id: chat.id,
        agent_username: agentOf(person, provider),
        always_on,
      });
    await add(bob, "gpt", true);
    await add(alice, "gpt", false);
    await add(alice, "claude", true);
    const items = [
      { agent: accountOf(bob, "gpt"), always_on: true },
      { agent: accountOf(alice, "gpt"), always_on: false },
      { agent: accountOf(alice), always_on: true },
    ];
    expect(await agentsIn(caller, chat)).toEqual(items);
    expect(await agentsIn(bob, chat)).toEqual(items);
  });
});

describe.each(transports)("addGroupAgent over %s", (transport) => {
  test("adds an agent that answers only mentions by default", async () => {
    await using group = await newGroup(transport);
    const { chat, caller, target } = group;
    expect(await caller.call("addGroupAgent", target)).toBeUndefined();
    expect(await agentsIn(caller, chat)).toEqual([{ agent: accountOf(alice), always_on: false }]);
    const gpt = { ...target, agent_username: agentOf(alice, "gpt") };
    await caller.call("addGroupAgent", { ...gpt, always_on: true });
    expect(await agentsIn(caller, chat)).toContainEqual({
      agent: accountOf(alice, "gpt"),
      always_on: true,
    });
  });

  test("makes the agent a participant and sends an event to all participants", async () => {
    await using group = await newGroup(transport);
    const { chat, caller, target } = group;
    await using reader = await bob.connect();
    await using outsider = await carol.connect();
    await caller.call("addGroupAgent", target);
    const { participants } = await bob.call("getChat", { chat_id: chat.id });
    expect(participants).toEqual([alice.account, bob.account, accountOf(alice)]);
    const [updated, ...rest] = await reader.settledEvents("events.conversationUpdated");
    expect(updated).toMatchObject({
      params: { id: chat.id, participants, participant_count: 3, seq: chat.seq + 1 },
      at: { conversation_id: chat.id, seq: chat.seq + 1 },
    });
    expect(rest).toEqual([]);
    expect(await outsider.settledButAccounts()).toHaveLength(1);
  });

  test("changes only the mode of an agent that is in the group", async () => {
    await using group = await newGroup(transport);
    const { chat, caller, target } = group;
    await caller.call("addGroupAgent", target);
    const before = await bob.call("getChat", { chat_id: chat.id });
    await using reader = await bob.connect();
    for (const always_on of [true, true, false, true]) {
      await caller.call("addGroupAgent", { ...target, always_on });
      expect(await agentsIn(caller, chat)).toEqual([{ agent: accountOf(alice), always_on }]);
    }
    const received = await reader.settledEvents("events.conversationUpdated");
    expect(received.map(({ params }) => params.changes.map((each) => each.always_on))).toEqual([
      [true],
      [false],
      [true],
    ]);
    const after = await bob.call("getChat", { chat_id: chat.id });
    expect(after).toMatchObject({ participants: before.participants, seq: before.seq + 3 });
  });

  test("without always_on does not change the mode of an agent that is in the group", async () => {
    await using group = await newGroup(transport);
    const { chat, caller, target } = group;
    await caller.call("addGroupAgent", { ...target, always_on: true });
    await using reader = await bob.connect();
    await caller.call("addGroupAgent", target);
    expect(await agentsIn(caller, chat)).toEqual([{ agent: accountOf(alice), always_on: true }]);
    expect(await reader.settledButAccounts()).toHaveLength(1);
  });

  test("ignores the case of the username", async () => {
    await using group = await newGroup(transport);
    const { chat, caller, target } = group;
    const agent_username = target.agent_username.toUpperCase();
    await caller.call("addGroupAgent", { ...target, agent_username, always_on: true });
    await caller.call("setGroupAgentMode", { ...target, agent_username, always_on: false });
    expect(await agentsIn(caller, chat)).toEqual([{ agent: accountOf(alice), always_on: false }]);
    await caller.call("removeGroupAgent", { ...target, agent_username });
    expect(await agentsIn(caller, chat)).toEqual([]);
  });

  test("needs no key", async () => {
    await using group = await newGroup(transport);
    const { caller, target } = group;
    expect((await caller.call("getMyAgents")).items[0]?.key_configured).toBe(false);
    await caller.call("addGroupAgent", target);
  });
});

describe.each(transports)("removeGroupAgent over %s", (transport) => {
  test("removes the agent and sends an event to all participants", async () => {
    await using group = await newGroup(transport);
    const { chat, caller, target } = group;
    await caller.call("addGroupAgent", target);
    await using reader = await bob.connect();
    expect(await caller.call("removeGroupAgent", target)).toBeUndefined();
    expect(await agentsIn(caller, chat)).toEqual([]);
    expect(await reader.settledEvents("events.conversationUpdated")).toMatchObject([
      { params: { participants: [alice.account, bob.account] }, at: { seq: chat.seq + 2 } },
    ]);
  });

  test("resets the mode", async () => {
    await using group = await newGroup(transport);
    const { chat, caller, target } = group;
    await caller.call("addGroupAgent", { ...target, always_on: true });
    await caller.call("removeGroupAgent", target);
    await caller.call("addGroupAgent", target);
    expect(await agentsIn(caller, chat)).toEqual([{ agent: accountOf(alice), always_on: false }]);
  });

  test("keeps the other agents", async () => {
    await using group = await newGroup(transport);
    const { chat, caller, target } = group;
    await caller.call("addGroupAgent", target);
    await bob.call("addGroupAgent", { chat_id: chat.id, agent_username: agentOf(bob) });
    await caller.call("removeGroupAgent", target);
    expect(await agentsIn(caller, chat)).toEqual([{ agent: accountOf(bob), always_on: false }]);
  });
});

describe.each(transports)("setGroupAgentMode over %s", (transport) => {
  test("sets the mode and sends an event if it changes", async () => {
    await using group = await newGroup(transport);
    const { chat, caller, target } = group;
    await caller.call("addGroupAgent", target);
    await using reader = await bob.connect();
    for (const always_on of [true, true, false]) {
      expect(await caller.call("setGroupAgentMode", { ...target, always_on })).toBeUndefined();
      expect(await agentsIn(bob, chat)).toEqual([{ agent: accountOf(alice), always_on }]);
    }
    const received = await reader.settledEvents("events.conversationUpdated");
    expect(received.map(({ params }) => params.changes)).toMatchObject([
      [
        {
          kind: "mode_changed",
          actor: alice.account,
          subjects: [accountOf(alice)],
          always_on: true,
        },
      ],
      [{ kind: "mode_changed", always_on: false }],
    ]);
  });
});

describe.each(transports)("errors over %s", (transport) => {
  const operations = {
    addGroupAgent: {},
    removeGroupAgent: {},
    setGroupAgentMode: { always_on: true },
  } as const;
  type Operation = keyof typeof operations;
  const names = Object.keys(operations) as Operation[];

  /** The outcome of each of the three operations. */
  async function codes(person: Person, chat_id: unknown, agent_username: unknown) {
    await using caller = await person.via(transport);
    const found: Record<string, string> = {};
    for (const name of names) {
      const input = { chat_id, agent_username, ...operations[name] } as never;
      found[name] = await outcome(caller.call(name, input));
    }
    return found;
  }
  const all = (code: string) => Object.fromEntries(names.map((name) => [name, code]));
  const missing = Bun.randomUUIDv7();

  test("an unknown conversation is not_found, whatever else is wrong", async () => {
    for (const agent of [agentOf(alice), "nobody:claude", bob.username, agentOf(bob)]) {
      expect(await codes(alice, missing, agent)).toEqual(all("not_found"));
    }
  });

  test("a conversation of other people is forbidden, whatever else is wrong", async () => {
    const chat = await groupOf(alice, bob);
    for (const agent of [agentOf(carol), "nobody:claude", bob.username, agentOf(alice)]) {
      expect(await codes(carol, chat.id, agent)).toEqual(all("forbidden"));
    }
    const direct = await alice.call("startChat", { usernames: [bob.username] });
    expect(await codes(carol, direct.id, agentOf(carol))).toEqual(all("forbidden"));
  });

  test("a direct conversation is a bad_request, whatever else is wrong", async () => {
    const direct = await alice.call("startChat", { usernames: [agentOf(alice)] });
    for (const agent of [agentOf(alice), "nobody:claude", bob.username, agentOf(bob)]) {
      expect(await codes(alice, direct.id, agent)).toEqual(all("bad_request"));
    }
  });

  test("an unknown agent is not_found", async () => {
    const chat = await groupOf(alice, bob);
    for (const agent of [
      "nobody:claude",
      "nobody",
      `${alice.username}:mistral`,
      "?",
      "@x:claude",
    ]) {
      expect(await codes(alice, chat.id, agent)).toEqual(all("not_found"));
    }
  });

  test("a person instead of an agent is a bad_request, whether in the group or not", async () => {
    const chat = await groupOf(alice, bob);
    for (const person of [alice, bob, carol]) {
      expect(await codes(alice, chat.id, person.username)).toEqual(all("bad_request"));
    }
  });

  test("another person's agent is forbidden, whether in the group or not, even to the admin", async () => {
    const chat = await groupOf(alice, bob);
    expect(await codes(alice, chat.id, agentOf(bob))).toEqual(all("forbidden"));
    await bob.call("addGroupAgent", { chat_id: chat.id, agent_username: agentOf(bob) });
    expect(await codes(alice, chat.id, agentOf(bob))).toEqual(all("forbidden"));
    expect(await agentsIn(alice, chat)).toHaveLength(1);
  });

  test("removing or setting the mode of an agent outside the group is not_found", async () => {
    const chat = await groupOf(alice, bob);
    const target = { chat_id: chat.id, agent_username: agentOf(alice) };
    await using caller = await alice.via(transport);
    const removed = await failure(caller.call("removeGroupAgent", target));
    const mode = await failure(caller.call("setGroupAgentMode", { ...target, always_on: true }));
    expect([removed.code, mode.code]).toEqual(["not_found", "not_found"]);
    expect(removed.message).toStartWith("not found: ");
    expect(await agentsIn(caller, chat)).toEqual([]);
  });

  test("input of the wrong type is a bad_request that names the field, before any lookup", async () => {
    await using caller = await carol.via(transport);
    const chatField = transport === "HTTP" ? "chat_id" : "conversation_id";
    const good = { chat_id: missing, agent_username: "nobody:claude", always_on: true };
    const wrong: [Operation, object, string][] = [
      ...names.flatMap((name): [Operation, object, string][] => [
        [name, { chat_id: "x" }, chatField],
        [name, { chat_id: 5 }, chatField],
        [name, { agent_username: 5 }, "agent_username"],
        [name, { agent_username: "" }, "agent_username"],
        [name, { agent_username: undefined }, "agent_username"],
        [name, { agent_username: "x".repeat(81) }, "agent_username"],
      ]),
      ["addGroupAgent", { always_on: "yes" }, "always_on"],
      ["setGroupAgentMode", { always_on: undefined }, "always_on"],
      ["setGroupAgentMode", { always_on: 1 }, "always_on"],
      ["setGroupAgentMode", { always_on: null }, "always_on"],
    ];
    for (const [name, changes, field] of wrong) {
      const failed = await failure(caller.call(name, { ...good, ...changes } as never));
      expect([name, changes, failed.code]).toEqual([name, changes, "bad_request"]);
      expect(Object.keys(failed.parameters?.fields ?? {})).toEqual([field]);
    }
  });

  test("getGroupAgents and stopChatAgents need a conversation of the caller's", async () => {
    const chat = await groupOf(alice, bob);
    const direct = await alice.call("startChat", { usernames: [agentOf(alice)] });
    const codeOf = async (
      person: Person,
      name: "getGroupAgents" | "stopChatAgents",
      chat_id: string,
    ) => {
      await using caller = await person.via(transport);
      return await outcome(caller.call(name, { chat_id }));
    };
    for (const name of ["getGroupAgents", "stopChatAgents"] as const) {
      expect(await codeOf(alice, name, missing)).toBe("not_found");
      expect(await codeOf(carol, name, chat.id)).toBe("forbidden");
      expect(await codeOf(carol, name, direct.id)).toBe("forbidden");
    }
    expect(await codeOf(alice, "getGroupAgents", direct.id)).toBe("bad_request");
    // stopChatAgents works in direct conversations too.
    expect(await codeOf(alice, "stopChatAgents", direct.id)).toBe("ok");
  });
});

describe("agents as participants", () => {
  test("answer only mentions if they are added like people", async () => {
    const chat = await groupOf(alice, bob, { username: agentOf(alice) });
    await bob.call("addChatMembers", { chat_id: chat.id, usernames: [agentOf(bob, "gpt")] });
    expect(await agentsIn(alice, chat)).toEqual([
      { agent: accountOf(alice), always_on: false },
      { agent: accountOf(bob, "gpt"), always_on: false },
    ]);
  });

  test("can be added only by their owner", async () => {
    const chat = await groupOf(alice, bob);
    const usernames = [agentOf(bob)];
    const invited = alice.call("addChatMembers", { chat_id: chat.id, usernames });
    expect((await failure(invited)).code).toBe("forbidden");
    const started = alice.call("startChat", { usernames, kind: "group" });
    expect((await failure(started)).code).toBe("forbidden");
    const direct = alice.call("startChat", { usernames });
    expect((await failure(direct)).code).toBe("forbidden");
  });

  test("leave with their owner, who leaves or is removed", async () => {
    for (const go of ["leaves", "is removed"]) {
      const chat = await groupOf(alice, bob, { username: agentOf(alice) });
      for (const provider of ["claude", "gpt"]) {
        const agent_username = agentOf(bob, provider);
        await bob.call("addGroupAgent", { chat_id: chat.id, agent_username, always_on: true });
      }
      if (go === "leaves") await bob.call("leaveChat", { chat_id: chat.id });
      else await alice.call("removeChatMember", { chat_id: chat.id, username: bob.username });
      const items = await agentsIn(alice, chat);
      expect(items).toEqual([{ agent: accountOf(alice), always_on: false }]);
    }
  });

  test("can be removed by the admin and by their owner", async () => {
    const chat = await groupOf(alice, bob, carol);
    const own = { chat_id: chat.id, agent_username: agentOf(bob) };
    const username = agentOf(bob);
    await bob.call("addGroupAgent", own);
    const others = carol.call("removeChatMember", { chat_id: chat.id, username });
    expect((await failure(others)).code).toBe("forbidden");
    await alice.call("removeChatMember", { chat_id: chat.id, username });
    expect(await agentsIn(alice, chat)).toEqual([]);
    await bob.call("addGroupAgent", own);
    await bob.call("removeChatMember", { chat_id: chat.id, username });
    expect(await agentsIn(alice, chat)).toEqual([]);
  });

  test("cannot join a full group, which can still change the modes of its agents", async () => {
    await using small = await startServer({ ...noRates, ...limits({ group_participants: 3 }) });
    const [owner, guest] = await people(small.url, "owner", "guest");
    const chat = await groupOf(owner, guest);
    const add = (provider: string, always_on: boolean) =>
      owner.call("addGroupAgent", {
        chat_id: chat.id,
        agent_username: agentOf(owner, provider),
        always_on,
      });
    await add("claude", false);
    const refused = await failure(add("gpt", false));
    expect(refused.code).toBe("bad_request");
    expect(refused.parameters?.fields).toHaveProperty("agent_username");
    await add("claude", true);
    expect(await agentsIn(guest, chat)).toEqual([{ agent: accountOf(owner), always_on: true }]);
  });
});
