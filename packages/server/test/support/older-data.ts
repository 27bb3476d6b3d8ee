import { expect } from "bun:test";
import { DEFAULT_LIMITS } from "../../src/rules/budget.ts";
import type { ReadTx } from "../../src/store/store.ts";

const [CHAT = "", FIRST = "", SECOND = "", THIRD = "", ANSWER = ""] = [1, 2, 3, 4, 5].map(
  (n) => `01890000-0000-7000-8000-00000000000${n}`,
);

const NO_KEY = "Alice has not set an API key for this agent yet.";
const ERROR = JSON.stringify({ code: "key_missing", message: NO_KEY });
const TURN = JSON.stringify({
  status: "failed",
  triggered_by: THIRD,
  model: "",
  error: JSON.parse(ERROR),
  usage: null,
});

/**
 * What 0.1.0 may have stored: two messages that alice has hidden, one of carol, who has left, and the
 * answer of an agent without a key.
 */
export const olderData = (dialect: "SQLite" | "PostgreSQL") => {
  const [no, yes, clocks] = dialect === "SQLite" ? ["0", "1", "0"] : ["false", "true", "0, 0"];
  const clockColumns = dialect === "SQLite" ? "updated_at" : "updated_at, changed_at";
  return `
  INSERT INTO accounts (id, username, kind, display_name, owner_id, provider, created_at)
  VALUES (1, 'alice', 'human', 'Alice Ames', NULL, NULL, 0), (2, 'bob', 'human', 'Bob', NULL, NULL, 0),
    (3, 'carol', 'human', 'Carol', NULL, NULL, 0),
    (4, 'alice:claude', 'agent', 'Claude', 1, 'claude', 0), (5, 'alice:gpt', 'agent', 'GPT', 1, 'gpt', 0);
  INSERT INTO agents (account_id, model, turns_per_minute) VALUES (4, NULL, 5), (5, 'large', NULL);
  INSERT INTO conversations (id, uuid, kind, created_by, created_at)
  VALUES (1, '${CHAT}', 'group', 1, 0);
  INSERT INTO counters (conversation_id, seq, humans, agents, participants, ${clockColumns})
  VALUES (1, 4, 3, 1, 2, ${clocks});
  INSERT INTO members (conversation_id, account_id, position, joined_at, last_read_seq,
    read_humans, read_agents)
  VALUES (1, 1, 1, 0, 0, 2, 0), (1, 2, 2, 0, 2, 2, 0);
  INSERT INTO messages (id, uuid, conversation_id, seq, version, sender_id, by_agent, human_n, agent_n,
    content, turn, created_at, finalized_at)
  VALUES (1, '${FIRST}', 1, 1, 1, 2, ${no}, 1, 0, 'one', NULL, 0, 0),
    (2, '${SECOND}', 1, 2, 2, 2, ${no}, 2, 0, 'two', NULL, 0, 0),
    (3, '${THIRD}', 1, 3, 3, 3, ${no}, 3, 0, 'three', NULL, 0, 0),
    (4, '${ANSWER}', 1, 4, 4, 4, ${yes}, 3, 1, '${NO_KEY}', '${TURN}', 0, 0);
  INSERT INTO turns (agent_id, conversation_id, trigger_id, open_ended, status, message_id, error,
    created_at)
  VALUES (4, 1, 3, ${no}, 'failed', 4, '${ERROR}', 0);
  INSERT INTO hidden (account_id, conversation_id, seq, at_seq) VALUES (1, 1, 1, 2), (1, 1, 2, 2);`;
};

const WITHOUT_NAME = "The owner of this agent has not set an API key for it yet.";

/** What is true of that data after the migration. */
export const afterMigration: readonly (readonly [
  sentence: string,
  check: (tx: ReadTx) => Promise<void>,
])[] = [
  [
    "limits that were set are kept, and other agents have the defaults",
    async (tx) => {
      const agents = await tx.agents(1);
      expect(agents.map(({ limits }) => limits)).toEqual([
        { ...DEFAULT_LIMITS, daily_tokens: null, turns_per_minute: 5 },
        DEFAULT_LIMITS,
      ]);
    },
  ],
  [
    "hidden messages are numbered by the account's own counter",
    async (tx) => {
      expect(await tx.hiddenSince(1, 0)).toEqual({
        hidden: [{ conversation_id: CHAT, ids: [FIRST, SECOND] }],
        seq: 2,
        has_more: false,
      });
      expect(await tx.hiddenSince(2, 0)).toMatchObject({ hidden: [], seq: 0 });
    },
  ],
  [
    "former members are found in messages",
    async (tx) => {
      expect((await tx.nameAudience(3)).conversations).toEqual([CHAT]);
      expect((await tx.nameAudience(5)).conversations).toEqual([]);
    },
  ],
  [
    "people who wrote know the members of the conversation",
    async (tx) => {
      expect(await tx.strangersAmong([2], 1)).toEqual([]);
      expect(await tx.strangersAmong([1], 2)).toEqual([1]);
    },
  ],
  [
    "people are found by their names",
    async (tx) => {
      const query = { query: "ames", viewerId: 2, directory: "everyone", limit: 10 } as const;
      const found = await tx.findAccounts(query);
      expect(found.map(({ username }) => username)).toEqual(["alice"]);
    },
  ],
  [
    "the sentence about a missing key names nobody",
    async (tx) => {
      expect(await tx.messageViews([ANSWER], 2)).toMatchObject([
        {
          content: WITHOUT_NAME,
          turn: { error: { code: "key_missing", message: WITHOUT_NAME } },
        },
      ]);
    },
  ],
];
