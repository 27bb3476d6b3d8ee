/** The schema of 0.1.0, the first release. */
export const SCHEMA = `
CREATE TABLE accounts (
  id INTEGER PRIMARY KEY,
  username TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL,
  display_name TEXT NOT NULL,
  password_hash TEXT,
  owner_id INTEGER REFERENCES accounts (id),
  provider TEXT,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX accounts_by_owner ON accounts (owner_id) WHERE owner_id IS NOT NULL;

CREATE TABLE sessions (
  id TEXT PRIMARY KEY,
  token_hash TEXT NOT NULL UNIQUE,
  account_id INTEGER NOT NULL REFERENCES accounts (id),
  user_agent TEXT,
  created_at INTEGER NOT NULL,
  last_used_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  ended_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_by_account ON sessions (account_id, last_used_at);

CREATE TABLE conversations (
  id INTEGER PRIMARY KEY,
  uuid TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL,
  title TEXT,
  direct_pair TEXT UNIQUE,
  created_by INTEGER NOT NULL REFERENCES accounts (id),
  admin_id INTEGER REFERENCES accounts (id),
  created_at INTEGER NOT NULL
) STRICT;

-- The columns that every message changes, in narrow rows, so that many rows share a page.
CREATE TABLE counters (
  conversation_id INTEGER PRIMARY KEY REFERENCES conversations (id),
  seq INTEGER NOT NULL DEFAULT 0,
  humans INTEGER NOT NULL DEFAULT 0,
  agents INTEGER NOT NULL DEFAULT 0,
  participants INTEGER NOT NULL DEFAULT 0,
  agent_participants INTEGER NOT NULL DEFAULT 0,
  updated_at INTEGER NOT NULL
) STRICT;

-- read_humans and read_agents are the numbers of messages that are not unread for the member: those
-- up to the read position, and later ones that are deleted or hidden.
CREATE TABLE members (
  conversation_id INTEGER NOT NULL REFERENCES conversations (id),
  account_id INTEGER NOT NULL REFERENCES accounts (id),
  position INTEGER NOT NULL,
  joined_at INTEGER NOT NULL,
  always_on INTEGER NOT NULL DEFAULT 0,
  last_read_seq INTEGER NOT NULL,
  read_humans INTEGER NOT NULL,
  read_agents INTEGER NOT NULL,
  unread_mentions INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (conversation_id, account_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX members_by_account ON members (account_id, conversation_id);
CREATE INDEX members_by_position ON members (conversation_id, position);

-- human_n and agent_n count the conversation's messages up to and including this one.
CREATE TABLE messages (
  id INTEGER PRIMARY KEY,
  uuid TEXT NOT NULL UNIQUE,
  conversation_id INTEGER NOT NULL REFERENCES conversations (id),
  seq INTEGER NOT NULL,
  version INTEGER NOT NULL,
  sender_id INTEGER NOT NULL REFERENCES accounts (id),
  by_agent INTEGER NOT NULL,
  human_n INTEGER NOT NULL,
  agent_n INTEGER NOT NULL,
  content TEXT NOT NULL,
  client_msg_id TEXT,
  reply_to_id TEXT,
  mentions TEXT,
  turn TEXT,
  reactions INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  edited_at INTEGER,
  finalized_at INTEGER,
  deleted_at INTEGER
) STRICT;
CREATE INDEX messages_live ON messages (conversation_id, seq) WHERE deleted_at IS NULL;
CREATE INDEX messages_changed ON messages (conversation_id, version) WHERE version > seq;
CREATE INDEX messages_dead ON messages (conversation_id, seq) WHERE deleted_at IS NOT NULL;
CREATE UNIQUE INDEX messages_sent ON messages (conversation_id, sender_id, client_msg_id)
  WHERE client_msg_id IS NOT NULL;

CREATE TABLE mentions (
  account_id INTEGER NOT NULL REFERENCES accounts (id),
  conversation_id INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  PRIMARY KEY (account_id, conversation_id, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE hidden (
  account_id INTEGER NOT NULL REFERENCES accounts (id),
  conversation_id INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  at_seq INTEGER NOT NULL,
  PRIMARY KEY (account_id, conversation_id, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE reactions (
  id INTEGER PRIMARY KEY,
  message_id INTEGER NOT NULL REFERENCES messages (id),
  account_id INTEGER NOT NULL REFERENCES accounts (id),
  emoji TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  UNIQUE (message_id, account_id, emoji)
) STRICT;

-- The settings of an agent. There is no row until its owner changes one.
CREATE TABLE agents (
  account_id INTEGER PRIMARY KEY REFERENCES accounts (id),
  model TEXT,
  instructions TEXT,
  spenders TEXT NOT NULL DEFAULT 'participants',
  daily_tokens INTEGER,
  chat_daily_tokens INTEGER,
  turns_per_minute INTEGER
) STRICT;

CREATE TABLE agent_keys (
  owner_id INTEGER NOT NULL REFERENCES accounts (id),
  provider TEXT NOT NULL,
  sealed TEXT NOT NULL,
  tail TEXT NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (owner_id, provider)
) STRICT, WITHOUT ROWID;

CREATE TABLE turns (
  id INTEGER PRIMARY KEY,
  agent_id INTEGER NOT NULL REFERENCES accounts (id),
  conversation_id INTEGER NOT NULL REFERENCES conversations (id),
  trigger_id INTEGER NOT NULL REFERENCES messages (id),
  -- Whether a later trigger may take the place of this one while it waits.
  open_ended INTEGER NOT NULL,
  -- Why it must not call the provider, if it must not.
  refusal TEXT,
  status TEXT NOT NULL,
  node TEXT,
  lease_until INTEGER,
  message_id INTEGER REFERENCES messages (id),
  model TEXT NOT NULL DEFAULT '',
  error TEXT,
  context_ids TEXT NOT NULL DEFAULT '[]',
  reserved INTEGER NOT NULL DEFAULT 0,
  estimated_input INTEGER NOT NULL DEFAULT 0,
  tries INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  started_at INTEGER,
  first_token_at INTEGER,
  finished_at INTEGER,
  input_tokens INTEGER,
  output_tokens INTEGER
) STRICT;
CREATE INDEX turns_open ON turns (agent_id, conversation_id, status)
  WHERE status IN ('waiting', 'running');
CREATE INDEX turns_by_conversation ON turns (conversation_id)
  WHERE status IN ('waiting', 'running');
CREATE INDEX turns_by_message ON turns (message_id) WHERE message_id IS NOT NULL;
CREATE INDEX turns_by_start ON turns (agent_id, started_at) WHERE started_at IS NOT NULL;

-- The text of streaming messages, in chunks as it was sent. At the end it moves to the message.
CREATE TABLE chunks (
  message_id INTEGER NOT NULL REFERENCES messages (id),
  byte_offset INTEGER NOT NULL,
  text TEXT NOT NULL,
  PRIMARY KEY (message_id, byte_offset)
) STRICT, WITHOUT ROWID;

-- The usage of each agent by conversation and day. reserved is what running turns may still use.
CREATE TABLE agent_usage (
  agent_id INTEGER NOT NULL REFERENCES accounts (id),
  day TEXT NOT NULL,
  conversation_id INTEGER NOT NULL REFERENCES conversations (id),
  turns INTEGER NOT NULL DEFAULT 0,
  failures INTEGER NOT NULL DEFAULT 0,
  input_tokens INTEGER NOT NULL DEFAULT 0,
  output_tokens INTEGER NOT NULL DEFAULT 0,
  reserved INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (agent_id, day, conversation_id)
) STRICT, WITHOUT ROWID;

-- Messages whose text changed after they were indexed for search.
CREATE TABLE search_changes (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  message_id INTEGER NOT NULL
) STRICT;
`;
