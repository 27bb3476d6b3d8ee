const KEY_MISSING = "'The owner of this agent has not set an API key for it yet.'";

/** From the schema of 0.1.0 to that of 0.2.0. */
export const STEP = `
-- Every new display name increments name_counter. The new value is the account's version.
ALTER TABLE accounts ADD COLUMN version INTEGER NOT NULL DEFAULT 0;
CREATE INDEX accounts_by_version ON accounts (version) WHERE version > 0;
-- An account's own counter: each call that hides messages increments it.
ALTER TABLE accounts ADD COLUMN own_seq INTEGER NOT NULL DEFAULT 0;
-- The id of a person in the product that embeds the service, and what the product stores with it.
ALTER TABLE accounts ADD COLUMN external_id TEXT;
ALTER TABLE accounts ADD COLUMN metadata TEXT;
CREATE UNIQUE INDEX accounts_by_external_id ON accounts (external_id)
  WHERE external_id IS NOT NULL;
ALTER TABLE accounts ADD COLUMN suspended_at INTEGER;
CREATE INDEX accounts_suspended ON accounts (username) WHERE suspended_at IS NOT NULL;
-- Set once the account, or the person whom it belongs to, is erased.
ALTER TABLE accounts ADD COLUMN erased_at INTEGER;
-- Who may add the account to conversations: everyone, or those it knows.
ALTER TABLE accounts ADD COLUMN added_by TEXT NOT NULL DEFAULT 'everyone';
-- The file of the picture.
ALTER TABLE accounts ADD COLUMN picture_id TEXT;
-- The day (UTC) on which an agent last changed its provider.
ALTER TABLE accounts ADD COLUMN provider_day TEXT;
-- What a product lets a person do, where that differs from what the server does, as JSON.
ALTER TABLE accounts ADD COLUMN policy TEXT;

-- Fingerprint of the network that the session was opened from.
ALTER TABLE sessions ADD COLUMN network TEXT;
CREATE INDEX sessions_by_end ON sessions (expires_at);
-- Whether the session ends at expires_at, however it is used.
ALTER TABLE sessions ADD COLUMN fixed INTEGER NOT NULL DEFAULT 0;
-- When the person last proved again who they are; null: not since the sign-in.
ALTER TABLE sessions ADD COLUMN confirmed_at INTEGER;

-- Set once nobody can write to the conversation any more.
ALTER TABLE conversations ADD COLUMN closed_at INTEGER;
ALTER TABLE conversations ADD COLUMN picture_id TEXT;
ALTER TABLE conversations ADD COLUMN metadata TEXT;
-- The id of the conversation in a product.
ALTER TABLE conversations ADD COLUMN external_id TEXT;
CREATE UNIQUE INDEX conversations_by_external_id ON conversations (external_id)
  WHERE external_id IS NOT NULL;

-- Whether the member has sent a message to the conversation.
ALTER TABLE members ADD COLUMN wrote INTEGER NOT NULL DEFAULT 0;

-- The component action that a message replies to, and the number of uses of its own components.
ALTER TABLE messages ADD COLUMN action TEXT;
ALTER TABLE messages ADD COLUMN uses INTEGER NOT NULL DEFAULT 0;
-- Imported messages are not in the totals of the conversation: they are never unread.
ALTER TABLE messages ADD COLUMN imported INTEGER NOT NULL DEFAULT 0;
-- The files of a message as clients see them. They do not change once the message is sent.
ALTER TABLE messages ADD COLUMN files TEXT;
-- The tool calls of a message as clients see them.
ALTER TABLE messages ADD COLUMN tool_calls TEXT;
-- What the backend of a product stores, as JSON.
ALTER TABLE messages ADD COLUMN metadata TEXT;

-- The value of the own counter of the account when it hid the message.
ALTER TABLE hidden ADD COLUMN own_seq INTEGER NOT NULL DEFAULT 0;
CREATE INDEX hidden_by_own_seq ON hidden (account_id, own_seq);

CREATE INDEX reactions_by_account ON reactions (account_id, id);

-- Whether the owner has set limits; otherwise the defaults apply.
ALTER TABLE agents ADD COLUMN limits_set INTEGER NOT NULL DEFAULT 0;
ALTER TABLE agents ADD COLUMN waiting_turns INTEGER NOT NULL DEFAULT 16;

-- Whether the trigger replaced earlier ones, which the turn answers too.
ALTER TABLE turns ADD COLUMN folded INTEGER NOT NULL DEFAULT 0;
-- Whether the operator's key pays for the turn.
ALTER TABLE turns ADD COLUMN by_operator INTEGER NOT NULL DEFAULT 0;
-- The message whose calls the turn continues, and what each call of the model took.
ALTER TABLE turns ADD COLUMN continues_id INTEGER;
ALTER TABLE turns ADD COLUMN rounds TEXT;
-- SQLite uses a partial index only where a query contains exactly its condition.
DROP INDEX turns_open;
CREATE INDEX turns_waiting ON turns (agent_id, conversation_id) WHERE status = 'waiting';
CREATE INDEX turns_running ON turns (agent_id, conversation_id) WHERE status = 'running';

-- The tokens that the operator pays for.
ALTER TABLE agent_usage ADD COLUMN operator_tokens INTEGER NOT NULL DEFAULT 0;

-- The id of the history, and the identity (place) of the database file when it was last opened.
CREATE TABLE history (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  id TEXT NOT NULL,
  place TEXT NOT NULL
) STRICT;

CREATE TABLE component_uses (
  id INTEGER PRIMARY KEY,
  message_id INTEGER NOT NULL REFERENCES messages (id),
  account_id INTEGER NOT NULL REFERENCES accounts (id),
  token TEXT NOT NULL,
  used_at INTEGER NOT NULL,
  UNIQUE (message_id, account_id, token)
) STRICT;

-- The names that people are found by: the username, and the display name from each word on.
CREATE TABLE account_names (
  name TEXT NOT NULL,
  username TEXT NOT NULL,
  account_id INTEGER NOT NULL,
  PRIMARY KEY (name, username)
) STRICT, WITHOUT ROWID;
CREATE INDEX account_names_by_account ON account_names (account_id, name);

-- Changes of groups themselves, by call: members, title, admin, modes of agents.
CREATE TABLE conversation_changes (
  conversation_id INTEGER NOT NULL REFERENCES conversations (id),
  seq INTEGER NOT NULL,
  at INTEGER NOT NULL,
  actor_id INTEGER NOT NULL REFERENCES accounts (id),
  changes TEXT NOT NULL,
  PRIMARY KEY (conversation_id, seq)
) STRICT, WITHOUT ROWID;

-- The account that an OIDC issuer (iss) identifies by a subject (sub).
CREATE TABLE identities (
  issuer TEXT NOT NULL,
  subject TEXT NOT NULL,
  account_id INTEGER NOT NULL REFERENCES accounts (id),
  created_at INTEGER NOT NULL,
  PRIMARY KEY (issuer, subject)
) STRICT, WITHOUT ROWID;
CREATE INDEX identities_by_account ON identities (account_id);

-- The counter that all names and pictures of accounts share.
CREATE TABLE name_counter (
  id INTEGER PRIMARY KEY,
  seq INTEGER NOT NULL
) STRICT;

-- The durable changes of each transaction, in commit order.
CREATE TABLE changes (
  id INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  node TEXT NOT NULL,
  body TEXT NOT NULL
) STRICT;

-- The entries up to this id are pruned. There is no row until the first are.
CREATE TABLE changes_pruned (
  one INTEGER PRIMARY KEY,
  up_to INTEGER NOT NULL
) STRICT;

CREATE TABLE subscriptions (
  name TEXT PRIMARY KEY,
  cursor INTEGER NOT NULL,
  node TEXT NOT NULL,
  leased_until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE operators (
  account_id INTEGER PRIMARY KEY REFERENCES accounts (id),
  created_at INTEGER NOT NULL
) STRICT;

-- The audit log. The account is a username: entries outlive accounts.
CREATE TABLE audit_log (
  id INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  action TEXT NOT NULL,
  account TEXT,
  details TEXT NOT NULL
) STRICT;
CREATE INDEX audit_log_by_time ON audit_log (at);
CREATE INDEX audit_log_by_action ON audit_log (action, id);
CREATE INDEX audit_log_by_account ON audit_log (account, id);

CREATE TABLE service_keys (
  name TEXT PRIMARY KEY,
  key_hash TEXT NOT NULL UNIQUE,
  created_at INTEGER NOT NULL,
  last_used_at INTEGER,
  revoked_at INTEGER
) STRICT, WITHOUT ROWID;

-- Addresses that are sent events. An empty list of events stands for all.
CREATE TABLE webhooks (
  id TEXT PRIMARY KEY,
  url TEXT NOT NULL,
  secret TEXT NOT NULL,
  events TEXT NOT NULL,
  chat TEXT,
  disabled TEXT,
  created_at INTEGER NOT NULL,
  -- The username of the operator who created the webhook; null for a service key.
  creator TEXT,
  -- The position in the change log when a webhook was created or enabled: it receives what follows.
  since INTEGER NOT NULL DEFAULT 0,
  -- When the retries of what waits for a webhook began anew, because it was enabled or has a new address.
  resumed_at INTEGER NOT NULL DEFAULT 0,
  -- By which it is found again instead of being created twice.
  name TEXT
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX webhooks_by_name ON webhooks (coalesce(creator, ''), name)
  WHERE name IS NOT NULL;

-- The change is stored as in the change log, without the text of messages.
CREATE TABLE deliveries (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  webhook_id TEXT NOT NULL,
  message_id TEXT NOT NULL,
  lane TEXT NOT NULL,
  event TEXT NOT NULL,
  change TEXT NOT NULL,
  status TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  queued_at INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  history TEXT NOT NULL,
  UNIQUE (webhook_id, message_id)
) STRICT;
CREATE INDEX deliveries_by_webhook ON deliveries (webhook_id, id);
CREATE INDEX deliveries_pending ON deliveries (webhook_id, lane, id) WHERE status = 'pending';
-- Ended deliveries are pruned without reading those that wait, which may be many.
CREATE INDEX deliveries_ended ON deliveries (webhook_id, id) WHERE status <> 'pending';

-- The deliveries of a webhook in one conversation. next_at is null while there is nothing to send.
CREATE TABLE webhook_lanes (
  webhook_id TEXT NOT NULL,
  lane TEXT NOT NULL,
  next_at INTEGER,
  claim INTEGER NOT NULL,
  version INTEGER NOT NULL,
  PRIMARY KEY (webhook_id, lane)
) STRICT, WITHOUT ROWID;
CREATE INDEX webhook_lanes_due ON webhook_lanes (webhook_id, next_at) WHERE next_at IS NOT NULL;

-- Addresses at which other programs post into a group. creator and account are usernames.
CREATE TABLE incoming_hooks (
  id TEXT PRIMARY KEY,
  secret_hash TEXT NOT NULL,
  chat TEXT NOT NULL,
  name TEXT NOT NULL,
  creator TEXT NOT NULL,
  account TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX incoming_hooks_by_chat ON incoming_hooks (chat, created_at);

-- Messages reported to the operators. message has the message as it was, around the UUIDs of those
-- near it. resolved_by is the name of an operator or of a service key.
CREATE TABLE reports (
  id TEXT PRIMARY KEY,
  at INTEGER NOT NULL,
  reporter_id INTEGER NOT NULL,
  sender_id INTEGER NOT NULL,
  message_id TEXT NOT NULL,
  reason TEXT NOT NULL,
  message TEXT NOT NULL,
  around TEXT NOT NULL,
  resolved_at INTEGER,
  resolved_by TEXT,
  note TEXT,
  UNIQUE (message_id, reporter_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX reports_open ON reports (id) WHERE resolved_at IS NULL;
CREATE INDEX reports_resolved ON reports (resolved_at) WHERE resolved_at IS NOT NULL;

-- Second factors of sign-in. The secret is sealed. last_step is the newest time step whose code was used.
CREATE TABLE second_factors (
  account_id INTEGER PRIMARY KEY REFERENCES accounts (id),
  secret TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  confirmed_at INTEGER,
  last_step INTEGER NOT NULL
) STRICT;

CREATE TABLE recovery_codes (
  account_id INTEGER NOT NULL REFERENCES accounts (id),
  code_hash TEXT NOT NULL,
  PRIMARY KEY (account_id, code_hash)
) STRICT, WITHOUT ROWID;

-- Erasures that are not finished: conversations to leave, and messages to delete.
CREATE TABLE erasures (
  account_id INTEGER PRIMARY KEY REFERENCES accounts (id),
  messages INTEGER NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE blocks (
  account_id INTEGER NOT NULL,
  blocked_id INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (account_id, blocked_id)
) STRICT, WITHOUT ROWID;

-- People who left a group for good: nobody can add them again.
CREATE TABLE final_departures (
  conversation_id INTEGER NOT NULL,
  account_id INTEGER NOT NULL,
  left_at INTEGER NOT NULL,
  PRIMARY KEY (conversation_id, account_id)
) STRICT, WITHOUT ROWID;

-- Accounts that are no members of a conversation but that its history shows: those that left, and
-- those that incoming hooks post as.
CREATE TABLE former_members (
  conversation_id INTEGER NOT NULL,
  account_id INTEGER NOT NULL,
  PRIMARY KEY (conversation_id, account_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX former_members_by_account ON former_members (account_id);

-- Files that people announced or uploaded. Their bytes are kept elsewhere, by the id of the blob.
CREATE TABLE files (
  uuid TEXT PRIMARY KEY,
  owner_id INTEGER NOT NULL REFERENCES accounts (id),
  -- Null for pictures, until a group has them.
  conversation_id INTEGER REFERENCES conversations (id),
  message_id INTEGER,
  blob TEXT,
  name TEXT NOT NULL,
  type TEXT NOT NULL DEFAULT 'application/octet-stream',
  size INTEGER NOT NULL,
  width INTEGER,
  height INTEGER,
  duration_ms INTEGER,
  placeholder TEXT,
  status TEXT NOT NULL DEFAULT 'waiting',
  used_at INTEGER,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX files_by_message ON files (message_id) WHERE message_id IS NOT NULL;
CREATE INDEX files_unused ON files (created_at) WHERE used_at IS NULL;
CREATE UNIQUE INDEX files_by_blob ON files (blob) WHERE blob IS NOT NULL;
-- For the files of a person, in the order of their ids.
CREATE INDEX files_by_owner ON files (owner_id, uuid);
-- The quota adds up the sizes of all files from the index alone, without reading the wide rows.
CREATE INDEX files_by_size ON files (size);

-- Blobs whose files are deleted, until they are deleted too.
CREATE TABLE abandoned_blobs (blob TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;

CREATE TABLE upload_usage (
  owner_id INTEGER NOT NULL,
  day TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  PRIMARY KEY (owner_id, day)
) STRICT, WITHOUT ROWID;

-- What agents asked tools for. The message has these calls as clients see them.
CREATE TABLE tool_calls (
  uuid TEXT PRIMARY KEY,
  message_id INTEGER NOT NULL,
  conversation_id INTEGER NOT NULL,
  agent_id INTEGER NOT NULL REFERENCES accounts (id),
  owner_id INTEGER NOT NULL REFERENCES accounts (id),
  -- The round of the turn that asked for it, and its place among the calls of the message.
  round INTEGER NOT NULL,
  position INTEGER NOT NULL,
  -- The length in bytes of what the agent had written before.
  text_bytes INTEGER NOT NULL,
  -- The id that the model gave it.
  model_id TEXT NOT NULL,
  -- Null for built-in tools.
  server_id TEXT,
  server TEXT NOT NULL,
  tool TEXT NOT NULL,
  title TEXT NOT NULL,
  arguments TEXT NOT NULL,
  status TEXT NOT NULL,
  result TEXT,
  error TEXT,
  decided_by TEXT,
  note TEXT,
  created_at INTEGER NOT NULL,
  decided_at INTEGER,
  started_at INTEGER,
  finished_at INTEGER,
  expires_at INTEGER,
  -- The fingerprint of the tool as it was when the call was asked for.
  fingerprint TEXT,
  -- Fields of a call that only the provider of its model understands, as JSON.
  provider_fields TEXT
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX tool_calls_by_message ON tool_calls (message_id, position);
CREATE INDEX tool_calls_pending ON tool_calls (owner_id, expires_at) WHERE status = 'pending';
-- An erasure finds the calls of an owner's agents.
CREATE INDEX tool_calls_by_owner ON tool_calls (owner_id);

-- MCP servers that people added. Their secrets are sealed; their tools are a JSON list.
CREATE TABLE tool_servers (
  id TEXT PRIMARY KEY,
  owner_id INTEGER NOT NULL REFERENCES accounts (id),
  name TEXT NOT NULL,
  url TEXT NOT NULL,
  secrets TEXT,
  status TEXT NOT NULL DEFAULT 'unreachable',
  error TEXT,
  tools TEXT NOT NULL DEFAULT '[]',
  contacted_at INTEGER,
  created_at INTEGER NOT NULL,
  UNIQUE (owner_id, name)
) STRICT, WITHOUT ROWID;

-- The tools that agents may use. The operator's servers are not in the table above.
CREATE TABLE tool_grants (
  agent_id INTEGER NOT NULL REFERENCES accounts (id),
  server_id TEXT NOT NULL,
  tool TEXT NOT NULL,
  policy TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  -- The place of a grant in the list that its owner gave.
  position INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (agent_id, server_id, tool)
) STRICT, WITHOUT ROWID;
CREATE INDEX tool_grants_by_server ON tool_grants (server_id);

-- What tools asked the owners of agents while they ran, until the call ends.
CREATE TABLE elicitations (
  uuid TEXT PRIMARY KEY,
  call_uuid TEXT NOT NULL,
  conversation_id INTEGER NOT NULL,
  owner_id INTEGER NOT NULL REFERENCES accounts (id),
  action TEXT,
  content TEXT,
  -- The JSON Schema of what a tool asks for.
  schema TEXT,
  -- The message in which a tool asks, so that an owner can list what is asked.
  message_uuid TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX elicitations_by_call ON elicitations (call_uuid);
CREATE INDEX elicitations_by_owner ON elicitations (owner_id);
-- What is asked in a message that is deleted is cancelled.
CREATE INDEX elicitations_by_message ON elicitations (message_uuid);

-- Tokens with which programs connect as external agents.
CREATE TABLE agent_tokens (
  id TEXT PRIMARY KEY,
  token_hash TEXT NOT NULL UNIQUE,
  account_id INTEGER NOT NULL REFERENCES accounts (id),
  name TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  last_used_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX agent_tokens_by_account ON agent_tokens (account_id);

-- When programs of external agents were last seen.
CREATE TABLE agent_presence (
  account_id INTEGER PRIMARY KEY REFERENCES accounts (id),
  seen_at INTEGER NOT NULL
) STRICT;

-- Links with which people set a new password: the last one of each account.
CREATE TABLE password_resets (
  account_id INTEGER PRIMARY KEY REFERENCES accounts (id),
  token_hash TEXT NOT NULL UNIQUE,
  expires_at INTEGER NOT NULL
) STRICT;

-- What 0.1.0 stored. Limits that were all removed look the same as limits that were never set.
UPDATE agents SET limits_set = 1 WHERE spenders <> 'participants' OR daily_tokens IS NOT NULL
  OR chat_daily_tokens IS NOT NULL OR turns_per_minute IS NOT NULL;
INSERT INTO name_counter (id, seq) VALUES (1, 0);
-- Each account numbers the messages that it has hidden.
UPDATE hidden SET own_seq = counted.own_seq
  FROM (SELECT account_id, conversation_id, seq, row_number()
          OVER (PARTITION BY account_id ORDER BY conversation_id, seq) AS own_seq FROM hidden) counted
  WHERE counted.account_id = hidden.account_id AND counted.seq = hidden.seq
    AND counted.conversation_id = hidden.conversation_id;
UPDATE accounts SET own_seq = (SELECT count(*) FROM hidden WHERE account_id = accounts.id)
  WHERE id IN (SELECT account_id FROM hidden);
UPDATE members SET wrote = 1
  WHERE (conversation_id, account_id) IN (SELECT conversation_id, sender_id FROM messages);
INSERT INTO former_members (conversation_id, account_id)
  SELECT DISTINCT conversation_id, sender_id FROM messages m WHERE NOT EXISTS (SELECT 1 FROM members o
    WHERE o.conversation_id = m.conversation_id AND o.account_id = m.sender_id);
-- The sentence about a missing key named the owner, whose name an erasure must remove.
INSERT INTO search_changes (message_id) SELECT m.id FROM turns t JOIN messages m ON m.id = t.message_id
  WHERE t.error ->> 'code' = 'key_missing' AND m.content = t.error ->> 'message';
UPDATE messages SET content = ${KEY_MISSING}
  WHERE id IN (SELECT m.id FROM turns t JOIN messages m ON m.id = t.message_id
    WHERE t.error ->> 'code' = 'key_missing' AND m.content = t.error ->> 'message');
UPDATE messages SET turn = json_set(turn, '$.error.message', ${KEY_MISSING})
  WHERE id IN (SELECT t.message_id FROM turns t WHERE t.error ->> 'code' = 'key_missing')
    AND json_extract(turn, '$.error.code') = 'key_missing';
UPDATE turns SET error = json_set(error, '$.message', ${KEY_MISSING})
  WHERE error ->> 'code' = 'key_missing';
`;
