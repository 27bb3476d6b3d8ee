import type { Text } from "./index.ts";

const KEY_MISSING = "'The owner of this agent has not set an API key for it yet.'";

/** From the schema of 0.1.0 to that of 0.2.0. */
export const STEP: Text = (either) => `
-- Every new display name increments name_counter. The new value is the account's version.
ALTER TABLE accounts ADD COLUMN version bigint NOT NULL DEFAULT 0;
CREATE INDEX accounts_by_version ON accounts (version) WHERE version > 0;
-- An account's own counter: each call that hides messages increments it.
ALTER TABLE accounts ADD COLUMN own_seq bigint NOT NULL DEFAULT 0;
-- The id of a person in the product that embeds the service, and what the product stores with it.
ALTER TABLE accounts ADD COLUMN external_id text COLLATE "C";
ALTER TABLE accounts ADD COLUMN metadata jsonb;
CREATE UNIQUE INDEX accounts_by_external_id ON accounts (external_id)
  WHERE external_id IS NOT NULL;
ALTER TABLE accounts ADD COLUMN suspended_at bigint;
CREATE INDEX accounts_suspended ON accounts (username) WHERE suspended_at IS NOT NULL;
-- Set once the account, or the person whom it belongs to, is erased.
ALTER TABLE accounts ADD COLUMN erased_at bigint;
-- Who may add the account to conversations: everyone, or those it knows.
ALTER TABLE accounts ADD COLUMN added_by text COLLATE "C" NOT NULL DEFAULT 'everyone';
-- The file of the picture.
ALTER TABLE accounts ADD COLUMN picture_id uuid;
-- The day (UTC) on which an agent last changed its provider.
ALTER TABLE accounts ADD COLUMN provider_day text;
-- What a product lets a person do, where that differs from what the server does, as JSON.
ALTER TABLE accounts ADD COLUMN policy jsonb;

-- Fingerprint of the network that the session was opened from.
ALTER TABLE sessions ADD COLUMN network text COLLATE "C";
CREATE INDEX sessions_by_end ON sessions (expires_at);
-- Whether the session ends at expires_at, however it is used.
ALTER TABLE sessions ADD COLUMN fixed boolean NOT NULL DEFAULT false;
-- When the person last proved again who they are; null: not since the sign-in.
ALTER TABLE sessions ADD COLUMN confirmed_at bigint;

-- Set once nobody can write to the conversation any more.
ALTER TABLE conversations ADD COLUMN closed_at bigint;
ALTER TABLE conversations ADD COLUMN picture_id uuid;
ALTER TABLE conversations ADD COLUMN metadata jsonb;
-- The id of the conversation in a product.
ALTER TABLE conversations ADD COLUMN external_id text;
CREATE UNIQUE INDEX conversations_by_external_id ON conversations (external_id)
  WHERE external_id IS NOT NULL;

${either(`-- The change log replaces the tables events, uncounted and departures, and this column. They stay
-- for nodes of the version before, which may run beside this one during an upgrade.
ALTER TABLE counters ALTER COLUMN changed_at SET DEFAULT 0;

`)}-- Whether the member has sent a message to the conversation.
ALTER TABLE members ADD COLUMN wrote boolean NOT NULL DEFAULT false;

-- The component action that a message replies to, and the number of uses of its own components.
ALTER TABLE messages ADD COLUMN action jsonb;
ALTER TABLE messages ADD COLUMN uses bigint NOT NULL DEFAULT 0;
-- Imported messages are not in the totals of the conversation: they are never unread.
ALTER TABLE messages ADD COLUMN imported boolean NOT NULL DEFAULT false;
-- The files of a message as clients see them. They do not change once the message is sent.
ALTER TABLE messages ADD COLUMN files jsonb;
-- The tool calls of a message as clients see them.
ALTER TABLE messages ADD COLUMN tool_calls jsonb;
-- What the backend of a product stores, as JSON.
ALTER TABLE messages ADD COLUMN metadata jsonb;

${either(`-- Lets a search skip the messages of other conversations. Existing rows have null: setting it would
-- index all of them again.
ALTER TABLE search ADD COLUMN conversation_id bigint;

`)}-- The value of the own counter of the account when it hid the message.
ALTER TABLE hidden ADD COLUMN own_seq bigint NOT NULL DEFAULT 0;
CREATE INDEX hidden_by_own_seq ON hidden (account_id, own_seq);

CREATE INDEX reactions_by_account ON reactions (account_id, id);

-- Whether the owner has set limits; otherwise the defaults apply.
ALTER TABLE agents ADD COLUMN limits_set boolean NOT NULL DEFAULT false;
ALTER TABLE agents ADD COLUMN waiting_turns bigint NOT NULL DEFAULT 16;

-- Whether the trigger replaced earlier ones, which the turn answers too.
ALTER TABLE turns ADD COLUMN folded boolean NOT NULL DEFAULT false;
-- Whether the operator's key pays for the turn.
ALTER TABLE turns ADD COLUMN by_operator boolean NOT NULL DEFAULT false;
-- The message whose calls the turn continues, and what each call of the model took.
ALTER TABLE turns ADD COLUMN continues_id bigint;
ALTER TABLE turns ADD COLUMN rounds jsonb;
${either(
  "",
  `-- SQLite uses a partial index only where a query contains exactly its condition.
DROP INDEX turns_open;
CREATE INDEX turns_waiting ON turns (agent_id, conversation_id) WHERE status = 'waiting';
CREATE INDEX turns_running ON turns (agent_id, conversation_id) WHERE status = 'running';
`,
)}
-- The tokens that the operator pays for.
ALTER TABLE agent_usage ADD COLUMN operator_tokens bigint NOT NULL DEFAULT 0;

${either(
  `-- The id of the history, and the identity (place) of the database when a node last started. The
-- place is empty if the data was copied from SQLite and no node has started yet.
CREATE TABLE history (one bigint PRIMARY KEY, id text NOT NULL, place text NOT NULL);`,
  `-- The id of the history, and the identity (place) of the database file when it was last opened.
CREATE TABLE history (
  one bigint PRIMARY KEY CHECK (one = 1),
  id text NOT NULL,
  place text NOT NULL
);`,
)}

CREATE TABLE component_uses (
  id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
  message_id bigint NOT NULL REFERENCES messages (id),
  account_id bigint NOT NULL REFERENCES accounts (id),
  token text COLLATE "C" NOT NULL,
  used_at bigint NOT NULL,
  UNIQUE (message_id, account_id, token)
);

-- The names that people are found by: the username, and the display name from each word on.
CREATE TABLE account_names (
  name text COLLATE "C" NOT NULL,
  username text COLLATE "C" NOT NULL,
  account_id bigint NOT NULL,
  PRIMARY KEY (name, username)
);
CREATE INDEX account_names_by_account ON account_names (account_id, name);

-- Changes of groups themselves, by call: members, title, admin, modes of agents.
CREATE TABLE conversation_changes (
  conversation_id bigint NOT NULL REFERENCES conversations (id),
  seq bigint NOT NULL,
  at bigint NOT NULL,
  actor_id bigint NOT NULL REFERENCES accounts (id),
  changes jsonb NOT NULL,
  PRIMARY KEY (conversation_id, seq)
);

-- The account that an OIDC issuer (iss) identifies by a subject (sub).
CREATE TABLE identities (
  issuer text COLLATE "C" NOT NULL,
  subject text COLLATE "C" NOT NULL,
  account_id bigint NOT NULL REFERENCES accounts (id),
  created_at bigint NOT NULL,
  PRIMARY KEY (issuer, subject)
);
CREATE INDEX identities_by_account ON identities (account_id);

-- The counter that all names and pictures of accounts share.
CREATE TABLE name_counter (
  id bigint PRIMARY KEY,
  seq bigint NOT NULL
);

${either(
  `-- The durable changes of each transaction. Transactions that change one conversation have their
-- ids in commit order; others may commit in another order than that of their ids.`,
  "-- The durable changes of each transaction, in commit order.",
)}
CREATE TABLE changes (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at bigint NOT NULL,
  node text COLLATE "C" NOT NULL,
  body text COLLATE "C" NOT NULL
);

-- The entries up to this id are pruned. There is no row until the first are.
CREATE TABLE changes_pruned (
  one boolean PRIMARY KEY,
  up_to bigint NOT NULL
);

CREATE TABLE subscriptions (
  name text COLLATE "C" PRIMARY KEY,
  cursor bigint NOT NULL,
  node text COLLATE "C" NOT NULL,
  leased_until bigint NOT NULL
);

CREATE TABLE operators (
  account_id bigint PRIMARY KEY REFERENCES accounts (id),
  created_at bigint NOT NULL
);

-- The audit log. The account is a username: entries outlive accounts.
CREATE TABLE audit_log (
  id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
  at bigint NOT NULL,
  action text COLLATE "C" NOT NULL,
  account text COLLATE "C",
  details jsonb NOT NULL
);
CREATE INDEX audit_log_by_time ON audit_log (at);
CREATE INDEX audit_log_by_action ON audit_log (action, id);
CREATE INDEX audit_log_by_account ON audit_log (account, id);

CREATE TABLE service_keys (
  name text COLLATE "C" PRIMARY KEY,
  key_hash text COLLATE "C" NOT NULL UNIQUE,
  created_at bigint NOT NULL,
  last_used_at bigint,
  revoked_at bigint
);

-- Addresses that are sent events. An empty list of events stands for all.
CREATE TABLE webhooks (
  id text COLLATE "C" PRIMARY KEY,
  url text COLLATE "C" NOT NULL,
  secret text COLLATE "C" NOT NULL,
  events text COLLATE "C" NOT NULL,
  chat text COLLATE "C",
  disabled text COLLATE "C",
  created_at bigint NOT NULL,
  -- The username of the operator who created the webhook; null for a service key.
  creator text COLLATE "C",
  -- The position in the change log when a webhook was created or enabled: it receives what follows.
  since bigint NOT NULL DEFAULT 0,
  -- When the retries of what waits for a webhook began anew, because it was enabled or has a new address.
  resumed_at bigint NOT NULL DEFAULT 0,
  -- By which it is found again instead of being created twice.
  name text
);
CREATE UNIQUE INDEX webhooks_by_name ON webhooks (coalesce(creator, ''), name)
  WHERE name IS NOT NULL;

-- The change is stored as in the change log, without the text of messages.
CREATE TABLE deliveries (
  id bigint ${either("GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY", "PRIMARY KEY AUTOINCREMENT")},
  webhook_id text COLLATE "C" NOT NULL,
  message_id text COLLATE "C" NOT NULL,
  lane text COLLATE "C" NOT NULL,
  event text COLLATE "C" NOT NULL,
  change text COLLATE "C" NOT NULL,
  status text COLLATE "C" NOT NULL,
  created_at bigint NOT NULL,
  queued_at bigint NOT NULL,
  attempts bigint NOT NULL,
  history text COLLATE "C" NOT NULL,
  UNIQUE (webhook_id, message_id)
);
CREATE INDEX deliveries_by_webhook ON deliveries (webhook_id, id);
CREATE INDEX deliveries_pending ON deliveries (webhook_id, lane, id) WHERE status = 'pending';
-- Ended deliveries are pruned without reading those that wait, which may be many.
CREATE INDEX deliveries_ended ON deliveries (webhook_id, id) WHERE status <> 'pending';

-- The deliveries of a webhook in one conversation. next_at is null while there is nothing to send.
CREATE TABLE webhook_lanes (
  webhook_id text COLLATE "C" NOT NULL,
  lane text COLLATE "C" NOT NULL,
  next_at bigint,
  claim bigint NOT NULL,
  version bigint NOT NULL,
  PRIMARY KEY (webhook_id, lane)
);
CREATE INDEX webhook_lanes_due ON webhook_lanes (webhook_id, next_at) WHERE next_at IS NOT NULL;

-- Addresses at which other programs post into a group. creator and account are usernames.
CREATE TABLE incoming_hooks (
  id text COLLATE "C" PRIMARY KEY,
  secret_hash text COLLATE "C" NOT NULL,
  chat text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  creator text COLLATE "C" NOT NULL,
  account text COLLATE "C" NOT NULL,
  created_at bigint NOT NULL
);
CREATE INDEX incoming_hooks_by_chat ON incoming_hooks (chat, created_at);

-- Messages reported to the operators. message has the message as it was, around the UUIDs of those
-- near it. resolved_by is the name of an operator or of a service key.
CREATE TABLE reports (
  id text COLLATE "C" PRIMARY KEY,
  at bigint NOT NULL,
  reporter_id bigint NOT NULL,
  sender_id bigint NOT NULL,
  message_id text COLLATE "C" NOT NULL,
  reason text COLLATE "C" NOT NULL,
  message text COLLATE "C" NOT NULL,
  around text COLLATE "C" NOT NULL,
  resolved_at bigint,
  resolved_by text COLLATE "C",
  note text COLLATE "C",
  UNIQUE (message_id, reporter_id)
);
CREATE INDEX reports_open ON reports (id) WHERE resolved_at IS NULL;
CREATE INDEX reports_resolved ON reports (resolved_at) WHERE resolved_at IS NOT NULL;

-- Second factors of sign-in. The secret is sealed. last_step is the newest time step whose code was used.
CREATE TABLE second_factors (
  account_id bigint PRIMARY KEY REFERENCES accounts (id),
  secret text COLLATE "C" NOT NULL,
  created_at bigint NOT NULL,
  confirmed_at bigint,
  last_step bigint NOT NULL
);

CREATE TABLE recovery_codes (
  account_id bigint NOT NULL REFERENCES accounts (id),
  code_hash text COLLATE "C" NOT NULL,
  PRIMARY KEY (account_id, code_hash)
);

-- Erasures that are not finished: conversations to leave, and messages to delete.
CREATE TABLE erasures (
  account_id bigint PRIMARY KEY REFERENCES accounts (id),
  messages boolean NOT NULL,
  created_at bigint NOT NULL
);

CREATE TABLE blocks (
  account_id bigint NOT NULL,
  blocked_id bigint NOT NULL,
  created_at bigint NOT NULL,
  PRIMARY KEY (account_id, blocked_id)
);

-- People who left a group for good: nobody can add them again.
CREATE TABLE final_departures (
  conversation_id bigint NOT NULL,
  account_id bigint NOT NULL,
  left_at bigint NOT NULL,
  PRIMARY KEY (conversation_id, account_id)
);

-- Accounts that are no members of a conversation but that its history shows: those that left, and
-- those that incoming hooks post as.
CREATE TABLE former_members (
  conversation_id bigint NOT NULL,
  account_id bigint NOT NULL,
  PRIMARY KEY (conversation_id, account_id)
);
CREATE INDEX former_members_by_account ON former_members (account_id);

-- Files that people announced or uploaded. Their bytes are kept elsewhere, by the id of the blob.
CREATE TABLE files (
  uuid uuid PRIMARY KEY,
  owner_id bigint NOT NULL REFERENCES accounts (id),
  -- Null for pictures, until a group has them.
  conversation_id bigint REFERENCES conversations (id),
  message_id bigint,
  blob uuid,
  name text NOT NULL,
  type text COLLATE "C" NOT NULL DEFAULT 'application/octet-stream',
  size bigint NOT NULL,
  width bigint,
  height bigint,
  duration_ms bigint,
  placeholder text,
  status text COLLATE "C" NOT NULL DEFAULT 'waiting',
  used_at bigint,
  created_at bigint NOT NULL
);
CREATE INDEX files_by_message ON files (message_id) WHERE message_id IS NOT NULL;
CREATE INDEX files_unused ON files (created_at) WHERE used_at IS NULL;
CREATE UNIQUE INDEX files_by_blob ON files (blob) WHERE blob IS NOT NULL;
-- For the files of a person, in the order of their ids.
CREATE INDEX files_by_owner ON files (owner_id, uuid);
-- The quota adds up the sizes of all files from the index alone, without reading the wide rows.
CREATE INDEX files_by_size ON files (size);

-- Blobs whose files are deleted, until they are deleted too.
CREATE TABLE abandoned_blobs (blob uuid PRIMARY KEY);

CREATE TABLE upload_usage (
  owner_id bigint NOT NULL,
  day text COLLATE "C" NOT NULL,
  bytes bigint NOT NULL,
  PRIMARY KEY (owner_id, day)
);

-- What agents asked tools for. The message has these calls as clients see them.
CREATE TABLE tool_calls (
  uuid uuid PRIMARY KEY,
  message_id bigint NOT NULL,
  conversation_id bigint NOT NULL,
  agent_id bigint NOT NULL REFERENCES accounts (id),
  owner_id bigint NOT NULL REFERENCES accounts (id),
  -- The round of the turn that asked for it, and its place among the calls of the message.
  round bigint NOT NULL,
  position bigint NOT NULL,
  -- The length in bytes of what the agent had written before.
  text_bytes bigint NOT NULL,
  -- The id that the model gave it.
  model_id text NOT NULL,
  -- Null for built-in tools.
  server_id text COLLATE "C",
  server text NOT NULL,
  tool text NOT NULL,
  title text NOT NULL,
  arguments text NOT NULL,
  status text COLLATE "C" NOT NULL,
  result text,
  error text,
  decided_by text COLLATE "C",
  note text,
  created_at bigint NOT NULL,
  decided_at bigint,
  started_at bigint,
  finished_at bigint,
  expires_at bigint,
  -- The fingerprint of the tool as it was when the call was asked for.
  fingerprint text,
  -- Fields of a call that only the provider of its model understands, as JSON.
  provider_fields text
);
CREATE UNIQUE INDEX tool_calls_by_message ON tool_calls (message_id, position);
CREATE INDEX tool_calls_pending ON tool_calls (owner_id, expires_at) WHERE status = 'pending';
-- An erasure finds the calls of an owner's agents.
CREATE INDEX tool_calls_by_owner ON tool_calls (owner_id);

-- MCP servers that people added. Their secrets are sealed; their tools are a JSON list.
CREATE TABLE tool_servers (
  id text COLLATE "C" PRIMARY KEY,
  owner_id bigint NOT NULL REFERENCES accounts (id),
  name text COLLATE "C" NOT NULL,
  url text COLLATE "C" NOT NULL,
  secrets text COLLATE "C",
  status text COLLATE "C" NOT NULL DEFAULT 'unreachable',
  error text,
  tools text NOT NULL DEFAULT '[]',
  contacted_at bigint,
  created_at bigint NOT NULL,
  UNIQUE (owner_id, name)
);

-- The tools that agents may use. The operator's servers are not in the table above.
CREATE TABLE tool_grants (
  agent_id bigint NOT NULL REFERENCES accounts (id),
  server_id text COLLATE "C" NOT NULL,
  tool text COLLATE "C" NOT NULL,
  policy text COLLATE "C" NOT NULL,
  fingerprint text COLLATE "C" NOT NULL,
  -- The place of a grant in the list that its owner gave.
  position INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (agent_id, server_id, tool)
);
CREATE INDEX tool_grants_by_server ON tool_grants (server_id);

-- What tools asked the owners of agents while they ran, until the call ends.
CREATE TABLE elicitations (
  uuid uuid PRIMARY KEY,
  call_uuid uuid NOT NULL,
  conversation_id bigint NOT NULL,
  owner_id bigint NOT NULL REFERENCES accounts (id),
  action text COLLATE "C",
  content text,
  -- The JSON Schema of what a tool asks for.
  schema text,
  -- The message in which a tool asks, so that an owner can list what is asked.
  message_uuid uuid
);
CREATE INDEX elicitations_by_call ON elicitations (call_uuid);
CREATE INDEX elicitations_by_owner ON elicitations (owner_id);
-- What is asked in a message that is deleted is cancelled.
CREATE INDEX elicitations_by_message ON elicitations (message_uuid);

-- Tokens with which programs connect as external agents.
CREATE TABLE agent_tokens (
  id uuid PRIMARY KEY,
  token_hash text COLLATE "C" NOT NULL UNIQUE,
  account_id bigint NOT NULL REFERENCES accounts (id),
  name text NOT NULL,
  created_at bigint NOT NULL,
  last_used_at bigint
);
CREATE INDEX agent_tokens_by_account ON agent_tokens (account_id);

-- When programs of external agents were last seen.
CREATE TABLE agent_presence (
  account_id bigint PRIMARY KEY REFERENCES accounts (id),
  seen_at bigint NOT NULL
);

${either(`-- Until when nodes count as alive: nobody takes over their turns until then.
CREATE TABLE nodes (id text PRIMARY KEY, alive_until bigint NOT NULL);

`)}-- Links with which people set a new password: the last one of each account.
CREATE TABLE password_resets (
  account_id bigint PRIMARY KEY REFERENCES accounts (id),
  token_hash text COLLATE "C" NOT NULL UNIQUE,
  expires_at bigint NOT NULL
);

-- What 0.1.0 stored. Limits that were all removed look the same as limits that were never set.
UPDATE agents SET limits_set = true WHERE spenders <> 'participants' OR daily_tokens IS NOT NULL
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
UPDATE members SET wrote = true
  WHERE (conversation_id, account_id) IN (SELECT conversation_id, sender_id FROM messages);
INSERT INTO former_members (conversation_id, account_id)
  SELECT DISTINCT conversation_id, sender_id FROM messages m WHERE NOT EXISTS (SELECT 1 FROM members o
    WHERE o.conversation_id = m.conversation_id AND o.account_id = m.sender_id);
-- The sentence about a missing key named the owner, whose name an erasure must remove.
${either("DELETE FROM search WHERE message_id IN (", "INSERT INTO search_changes (message_id) ")}SELECT m.id FROM turns t JOIN messages m ON m.id = t.message_id
  WHERE t.error ->> 'code' = 'key_missing' AND m.content = t.error ->> 'message'${either(")")};
UPDATE messages SET content = ${KEY_MISSING}
  WHERE id IN (SELECT m.id FROM turns t JOIN messages m ON m.id = t.message_id
    WHERE t.error ->> 'code' = 'key_missing' AND m.content = t.error ->> 'message');
UPDATE messages SET turn = ${either(`jsonb_set(turn, '{error,message}', to_jsonb(${KEY_MISSING}::text))`, `json_set(turn, '$.error.message', ${KEY_MISSING})`)}
  WHERE id IN (SELECT t.message_id FROM turns t WHERE t.error ->> 'code' = 'key_missing')
    AND ${either("turn #>> '{error,code}'", "json_extract(turn, '$.error.code')")} = 'key_missing';
UPDATE turns SET error = ${either(`jsonb_set(error, '{message}', to_jsonb(${KEY_MISSING}::text))`, `json_set(error, '$.message', ${KEY_MISSING})`)}
  WHERE error ->> 'code' = 'key_missing';
`;
