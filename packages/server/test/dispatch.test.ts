import { describe, expect, test } from "bun:test";
import { mentionedHandles } from "@parley/protocol/markup";
import fc from "fast-check";
import { type Candidate, type Dispatched, dispatch } from "../src/rules/dispatch.ts";

const alice = { id: 1, username: "alice" };
const bob = { id: 2, username: "bob" };

const agent = (
  owner: { id: number; username: string },
  provider: string,
  changes: Partial<Pick<Candidate, "always_on" | "spenders">> = {},
): Candidate => ({
  account: {
    id: owner.id * 10 + provider.length,
    username: `${owner.username}:${provider}`,
    owner_id: owner.id,
  },
  always_on: false,
  spenders: "participants",
  waiting_turns: 16,
  ...changes,
});

const claude = agent(alice, "claude");
const gpt = agent(alice, "gpt");
const bobs = agent(bob, "claude");
const always = { always_on: true } as const;
const thrifty = { spenders: "owner" } as const;

interface Case {
  /** In a group unless said otherwise. */
  in?: "direct" | "group";
  agents: Candidate[];
  /** Alice, unless said otherwise. */
  from?: { id: number };
  fromAgent?: Candidate;
  says: string;
  /** Usernames of those who answer; one that only says why not has a `!` before it. */
  answer: string[];
}

/** From a message's text to the agents that answer it, as the service goes about it. */
function answering({ in: kind = "group", agents, from = alice, fromAgent, says }: Case): string[] {
  const names = agents.map(({ account }) => account.username);
  const present = new Set(["alice", "bob", ...names]);
  const sender = fromAgent
    ? { id: fromAgent.account.id, kind: "agent" as const }
    : { id: from.id, kind: "human" as const };
  const mentions = mentionedHandles(says).filter((username) => present.has(username));
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
      says: "hello",
      answer: ["alice:claude"],
    },
    "a mention there changes nothing": {
      in: "direct",
      agents: [claude],
      says: "hello @alice:claude @alice:claude",
      answer: ["alice:claude"],
    },
    "what the agent itself writes is not answered": {
      in: "direct",
      agents: [claude],
      fromAgent: claude,
      says: "hello @alice:claude",
      answer: [],
    },
    "two people alone are answered by nobody": {
      in: "direct",
      agents: [],
      says: "hello @alice:claude",
      answer: [],
    },
  });
});

describe("a group", () => {
  cases({
    "an agent that is not always on keeps quiet": { agents: [claude], says: "hello", answer: [] },
    "an agent that is always on answers every human message": {
      agents: [agent(alice, "claude", always)],
      from: bob,
      says: "hello",
      answer: ["alice:claude"],
    },
    "an agent that is always on answers a mention once": {
      agents: [agent(alice, "claude", always)],
      says: "hello @alice:claude",
      answer: ["alice:claude"],
    },
    "a mention is answered": {
      agents: [claude],
      from: bob,
      says: "what do you think, @alice:claude?",
      answer: ["alice:claude"],
    },
    "a mention of its owner is none of the agent's": {
      agents: [claude],
      says: "hello @alice",
      answer: [],
    },
    "a mention of an agent that is not there is answered by nobody": {
      agents: [claude],
      says: "hello @alice:gpt",
      answer: [],
    },
    "only the agents mentioned answer": {
      agents: [claude, gpt, bobs],
      says: "@bob:claude and @alice:gpt, please",
      answer: ["alice:gpt", "bob:claude"],
    },
    "those always on and those mentioned answer together": {
      agents: [agent(alice, "claude", always), gpt, bobs],
      says: "@bob:claude, please",
      answer: ["alice:claude", "bob:claude"],
    },
    "agents of one provider and different owners are told apart": {
      agents: [claude, bobs],
      says: "@bob:claude",
      answer: ["bob:claude"],
    },
    "agents start nobody, whatever they write": {
      agents: [agent(alice, "claude", always), gpt, agent(bob, "claude", always)],
      fromAgent: gpt,
      says: "@alice:claude @bob:claude @alice:gpt answer me",
      answer: [],
    },
  });
});

describe("a mention, read and dispatched", () => {
  const mentionOnly = (says: string, answer: string[]): Case => ({
    agents: [claude],
    says,
    answer,
  });
  const one = ["alice:claude"];
  cases({
    "counts in capitals": mentionOnly("@ALICE:Claude", one),
    "counts at the start": mentionOnly("@alice:claude hello", one),
    "counts before punctuation": mentionOnly("(@alice:claude), @alice:claude! …", one),
    "counts on a line of its own": mentionOnly("so:\n@alice:claude\nthanks", one),
    "counts beside a code span": mentionOnly("`x` @alice:claude `y`", one),
    "counts after an unclosed backtick": mentionOnly("a ` b @alice:claude", one),
    "counts after a fence that was closed": mentionOnly("```\nx\n```\n@alice:claude", one),
    "counts in a quotation": mentionOnly("> @alice:claude", one),
    "does not count inside a code span": mentionOnly("see `@alice:claude`", []),
    "does not count inside a code span of two backticks": mentionOnly("`` ` @alice:claude ``", []),
    "does not count inside fenced code": mentionOnly("```\n@alice:claude\n```", []),
    "does not count inside code fenced with tildes": mentionOnly("~~~ts\n@alice:claude\n~~~", []),
    "does not count inside a fence that never closes": mentionOnly("```\n@alice:claude", []),
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
      agents: [agent(alice, "claude", thrifty)],
      says: "@alice:claude",
      answer: ["alice:claude"],
    },
    "somebody else who asks is told why not": {
      agents: [agent(alice, "claude", thrifty)],
      from: bob,
      says: "@alice:claude",
      answer: ["!alice:claude"],
    },
    "somebody else who only talks is not bothered": {
      agents: [agent(alice, "claude", { ...thrifty, ...always })],
      from: bob,
      says: "hello",
      answer: [],
    },
    "the owner who only talks is answered by one that is always on": {
      agents: [agent(alice, "claude", { ...thrifty, ...always })],
      says: "hello",
      answer: ["alice:claude"],
    },
    "each agent goes by its own owner's wish": {
      agents: [agent(alice, "claude", thrifty), agent(alice, "gpt"), agent(bob, "claude", thrifty)],
      from: bob,
      says: "@alice:claude @alice:gpt @bob:claude",
      answer: ["!alice:claude", "alice:gpt", "bob:claude"],
    },
  });

  test("the reason is a sentence without a name or a key in it", () => {
    const [refused] = dispatch(
      { sender: { id: bob.id, kind: "human" }, mentions: ["alice:claude"] },
      { kind: "group" },
      [agent(alice, "claude", thrifty)],
    );
    expect(refused?.refusal).toBe("Only this agent's owner may ask it: they pay for its answers.");
  });
});

test("whatever the message, each agent answers at most once and agents never start agents", () => {
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
      (agents, kind, place, mentions) => {
        const sender = { id: alice.id, kind };
        const answers: Dispatched[] = dispatch({ sender, mentions }, { kind: place }, agents);
        const ids = answers.map(({ agent_id }) => agent_id);
        expect(new Set(ids).size).toBe(ids.length);
        expect(ids.every((id) => agents.some(({ account }) => account.id === id))).toBe(true);
        if (kind === "agent") expect(ids).toEqual([]);
      },
    ),
  );
});
