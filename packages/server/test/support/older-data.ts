const [CHAT, FIRST, SECOND] = [1, 2, 3].map((n) => `01890000-0000-7000-8000-00000000000${n}`);

/** What an installation of an earlier version may hold: two messages that alice has hidden. */
export const olderData = (clocks: "at" | "at, at") => `
  INSERT INTO accounts (id, username, kind, display_name, created_at)
  VALUES (1, 'alice', 'human', 'Alice', 0), (2, 'bob', 'human', 'Bob', 0);
  INSERT INTO conversations (id, uuid, kind, created_by, created_at)
  VALUES (1, '${CHAT}', 'group', 1, 0);
  INSERT INTO counters (conversation_id, seq, humans, participants, ${
    clocks === "at" ? "updated_at" : "updated_at, changed_at"
  })
  VALUES (1, 2, 2, 2, ${clocks.replaceAll("at", "0")});
  INSERT INTO members (conversation_id, account_id, position, joined_at, last_read_seq,
    read_humans, read_agents)
  VALUES (1, 1, 1, 0, 0, 2, 0), (1, 2, 2, 0, 2, 2, 0);
  INSERT INTO messages (uuid, conversation_id, seq, version, sender_id, by_agent, human_n, agent_n,
    content, created_at, finalized_at)
  VALUES ('${FIRST}', 1, 1, 1, 2, ${clocks === "at" ? "0" : "false"}, 1, 0, 'one', 0, 0),
    ('${SECOND}', 1, 2, 2, 2, ${clocks === "at" ? "0" : "false"}, 2, 0, 'two', 0, 0);
  INSERT INTO hidden (account_id, conversation_id, seq, at_seq) VALUES (1, 1, 1, 2), (1, 1, 2, 2);`;

/** What alice learns of it from the beginning. */
export const OLDER_HIDDEN = {
  hidden: [{ conversation_id: CHAT as string, ids: [FIRST as string, SECOND as string] }],
  seq: 2,
  has_more: false,
};
