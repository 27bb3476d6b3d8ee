import { describe, expect, test } from "bun:test";
import { mentionedHandles } from "@parley/protocol/markup";
import fc from "fast-check";
import { type Candidate, type Dispatched, dispatch, refusalError } from "../src/rules/dispatch.ts";

const alice = { id: 1, username: "alice" };
const bob = { id: 2, username: "bob" };

const agent = (
  owner: { id: number; username: string },
  provider: string,
  changes: Partial<Pick<Candidate, "always_on" | "spenders" | "is_suspended">> = {},
): Candidate => ({
  account: {
    id: owner.id * 10 + provider.length,
    username: `${owner.username}:${provider}`,
    owner_id: owner.id,
  },
  always_on: false,
  spenders: "participants",
  waiting_turns: 16,
  is_suspended: false,
  ...changes,
});

const claude = agent(alice, "claude");
const gpt = agent(alice, "gpt");
const bobs = agent(bob, "claude");
const alwaysOn = { always_on: true } as const;
const ownerOnly = { spenders: "owner" } as const;

interface Case {
  /** Default: group. */
  in?: "direct" | "group";
  agents: Candidate[];
  /** Default: alice. */
  from?: { id: number };
  fromAgent?: Candidate;
  content: string;
  /** The agents that answer. One that is refused has a `!` before its name. */
  answer: string[];
}

/** The agents that answer a message, from its text, as in the service. */
function answering({
  in: kind = "group",
  agents,
  from = alice,
  fromAgent,
  content,
}: Case): string[] {
  const names = agents.map(({ account }) => account.username);
  const present = new Set(["alice", "bob", ...names]);
  const sender = fromAgent
    ? { id: fromAgent.account.id, kind: "agent" as const }
    : { id: from.id, kind: "human" as const };
  const mentions = mentionedHandles(content).filter((username) => present.has(username));
  return dispatch({ sender, mentions }, { kind }, agents).map(({ agent_id, refusal }) => {
    const found = agents.find(({ account }) => account.id === agent_id);
    return `${refusal === null ? "" : "!"}${found?.account.username}`;
  });
}

function cases(table: Record<string, Case>) {
  for (const [name, each] of Object.entries(table)) {
    test(name, () => expect(answering(each)).toEqual(each.answer));
  }
}

describe("a direct conversation", () => {
  cases({
    "every human message is answered": {
      in: "direct",
      agents: [claude],
      content: "hello",
      answer: ["alice:claude"],
    },
    "a mention makes no difference": {
      in: "direct",
      agents: [claude],
      content: "hello @alice:claude @alice:claude",
      answer: ["alice:claude"],
    },
    "a message of the agent itself is not answered": {
      in: "direct",
      agents: [claude],
      fromAgent: claude,
      content: "hello @alice:claude",
      answer: [],
    },
    "a conversation without agents has no answer": {
      in: "direct",
      agents: [],
      content: "hello @alice:claude",
      answer: [],
    },
  });
});

describe("a group", () => {
  cases({
    "an agent that is not always on needs a mention": {
      agents: [claude],
      content: "hello",
      answer: [],
    },
    "an always-on agent answers every human message": {
      agents: [agent(alice, "claude", alwaysOn)],
      from: bob,
      content: "hello",
      answer: ["alice:claude"],
    },
    "an always-on agent answers a mention once": {
      agents: [agent(alice, "claude", alwaysOn)],
      content: "hello @alice:claude",
      answer: ["alice:claude"],
    },
    "a mention is answered": {
      agents: [claude],
      from: bob,
      content: "what do you think, @alice:claude?",
      answer: ["alice:claude"],
    },
    "a mention of its owner does not start an agent": {
      agents: [claude],
      content: "hello @alice",
      answer: [],
    },
    "a mention of an agent outside the group starts no agent": {
      agents: [claude],
      content: "hello @alice:gpt",
      answer: [],
    },
    "only the agents mentioned answer": {
      agents: [claude, gpt, bobs],
      content: "@bob:claude and @alice:gpt, please",
      answer: ["alice:gpt", "bob:claude"],
    },
    "always-on agents and mentioned agents both answer": {
      agents: [agent(alice, "claude", alwaysOn), gpt, bobs],
      content: "@bob:claude, please",
      answer: ["alice:claude", "bob:claude"],
    },
    "agents of the same provider are told apart by owner": {
      agents: [claude, bobs],
      content: "@bob:claude",
      answer: ["bob:claude"],
    },
    "messages of agents start no agent, whatever they mention": {
      agents: [agent(alice, "claude", alwaysOn), gpt, agent(bob, "claude", alwaysOn)],
      fromAgent: gpt,
      content: "@alice:claude @bob:claude @alice:gpt answer me",
      answer: [],
    },
  });
});

describe("a mention", () => {
  const mentionOnly = (content: string, answer: string[]): Case => ({
    agents: [claude],
    content,
    answer,
  });
  const one = ["alice:claude"];
  cases({
    "counts in capitals": mentionOnly("@ALICE:Claude", one),
    "counts at the start": mentionOnly("@alice:claude hello", one),
    "counts before punctuation": mentionOnly("(@alice:claude), @alice:claude! …", one),
    "counts on its own line": mentionOnly("so:\n@alice:claude\nthanks", one),
    "counts beside a code span": mentionOnly("`x` @alice:claude `y`", one),
    "counts after an unclosed backtick": mentionOnly("a ` b @alice:claude", one),
    "counts after a closed fence": mentionOnly("```\nx\n```\n@alice:claude", one),
    "counts in a block quote": mentionOnly("> @alice:claude", one),
    "does not count inside a code span": mentionOnly("see `@alice:claude`", []),
    "does not count inside a code span of two backticks": mentionOnly("`` ` @alice:claude ``", []),
    "does not count inside fenced code": mentionOnly("```\n@alice:claude\n```", []),
    "does not count inside code fenced with tildes": mentionOnly("~~~ts\n@alice:claude\n~~~", []),
    "does not count inside an unclosed fence": mentionOnly("```\n@alice:claude", []),
    "does not count as the end of another word": mentionOnly("mail@alice:claude", []),
    "does not count as the start of another word": mentionOnly("@alice:claude2", []),
    "does not count without its provider": mentionOnly("@alice", []),
    "does not count without the at sign": mentionOnly("alice:claude", []),
    "does not count with a space in it": mentionOnly("@alice :claude", []),
  });
});

describe("who may spend the key", () => {
  cases({
    "the owner is answered": {
      agents: [agent(alice, "claude", ownerOnly)],
      content: "@alice:claude",
      answer: ["alice:claude"],
    },
    "someone else who mentions the agent is refused": {
      agents: [agent(alice, "claude", ownerOnly)],
      from: bob,
      content: "@alice:claude",
      answer: ["!alice:claude"],
    },
    "someone else who does not mention the agent gets no refusal": {
      agents: [agent(alice, "claude", { ...ownerOnly, ...alwaysOn })],
      from: bob,
      content: "hello",
      answer: [],
    },
    "an always-on agent answers its owner": {
      agents: [agent(alice, "claude", { ...ownerOnly, ...alwaysOn })],
      content: "hello",
      answer: ["alice:claude"],
    },
    "each agent follows its own setting": {
      agents: [
        agent(alice, "claude", ownerOnly),
        agent(alice, "gpt"),
        agent(bob, "claude", ownerOnly),
      ],
      from: bob,
      content: "@alice:claude @alice:gpt @bob:claude",
      answer: ["!alice:claude", "alice:gpt", "bob:claude"],
    },
  });

  const refused = (candidate: Candidate) => {
    const asked = { sender: { id: bob.id, kind: "human" }, mentions: ["alice:claude"] } as const;
    const [dispatched] = dispatch(asked, { kind: "group" }, [candidate]);
    return refusalError(dispatched?.refusal ?? "");
  };

  test("a refusal of somebody who may not spend the owner's key names the limit", () => {
    expect(refused(agent(alice, "claude", ownerOnly))).toEqual({
      code: "budget_exceeded",
      message: "Only this agent's owner may ask it: they pay for its answers.",
      parameters: { limit: "spenders", changed_by: "owner" },
    });
  });

  test("a refusal because the owner is suspended has a code of its own", () => {
    expect(refused(agent(alice, "claude", { is_suspended: true }))).toEqual({
      code: "agent_suspended",
      message: "The account of this agent's owner is suspended.",
    });
  });

  test("a refusal that an earlier version stored as a sentence keeps its sentence", () => {
    const message = "Only this agent's owner may ask it: they pay for its answers.";
    expect(refusalError(message)).toEqual({ code: "budget_exceeded", message });
  });
});

test("for any message, each agent answers at most once and agents never start agents", () => {
  const candidate = fc.record({
    owner: fc.constantFrom(alice, bob),
    provider: fc.constantFrom("claude", "gpt"),
    always_on: fc.boolean(),
    spenders: fc.constantFrom("owner" as const, "participants" as const),
  });
  const candidates = fc
    .uniqueArray(candidate, { selector: ({ owner, provider }) => `${owner.id}:${provider}` })
    .map((list) => list.map(({ owner, provider, ...rest }) => agent(owner, provider, rest)));
  fc.assert(
    fc.property(
      candidates,
      fc.constantFrom("human" as const, "agent" as const),
      fc.constantFrom("direct" as const, "group" as const),
      fc.subarray(["alice:claude", "alice:gpt", "bob:claude", "bob:gpt"]),
      (agents, senderKind, conversationKind, mentions) => {
        const sender = { id: alice.id, kind: senderKind };
        const answers: Dispatched[] = dispatch(
          { sender, mentions },
          { kind: conversationKind },
          agents,
        );
        const ids = answers.map(({ agent_id }) => agent_id);
        expect(new Set(ids).size).toBe(ids.length);
        expect(ids.every((id) => agents.some(({ account }) => account.id === id))).toBe(true);
        if (senderKind === "agent") expect(ids).toEqual([]);
      },
    ),
  );
});
