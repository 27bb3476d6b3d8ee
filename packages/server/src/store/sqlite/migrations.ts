/** Each entry migrates the schema by one `user_version`. Entries are never changed, only added. */
export const migrations: readonly string[] = [
  `
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
  `,
  `
  -- The id of the history, and the identity (place) of the database file when it was last opened.
  CREATE TABLE history (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    id TEXT NOT NULL,
    place TEXT NOT NULL
  ) STRICT;
  `,
  `
  -- The component action that a message replies to, and the number of uses of its own components.
  ALTER TABLE messages ADD COLUMN action TEXT;
  ALTER TABLE messages ADD COLUMN uses INTEGER NOT NULL DEFAULT 0;

  CREATE TABLE component_uses (
    id INTEGER PRIMARY KEY,
    message_id INTEGER NOT NULL REFERENCES messages (id),
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    token TEXT NOT NULL,
    used_at INTEGER NOT NULL,
    UNIQUE (message_id, account_id, token)
  ) STRICT;
  `,
  `
  -- Fingerprint of the network that the session was opened from.
  ALTER TABLE sessions ADD COLUMN network TEXT;
  CREATE INDEX sessions_by_end ON sessions (expires_at);
  `,
  `
  -- Whether the owner has set limits; otherwise the defaults apply. In an earlier version, limits that
  -- were all removed look the same as limits that were never set.
  ALTER TABLE agents ADD COLUMN limits_set INTEGER NOT NULL DEFAULT 0;
  UPDATE agents SET limits_set = 1 WHERE spenders <> 'participants' OR daily_tokens IS NOT NULL
    OR chat_daily_tokens IS NOT NULL OR turns_per_minute IS NOT NULL;
  ALTER TABLE agents ADD COLUMN waiting_turns INTEGER NOT NULL DEFAULT 16;
  -- Whether the trigger replaced earlier ones, which the turn answers too.
  ALTER TABLE turns ADD COLUMN folded INTEGER NOT NULL DEFAULT 0;
  `,
  `
  -- The names that people are found by: the username, and the display name from each word on.
  CREATE TABLE account_names (
    name TEXT NOT NULL,
    username TEXT NOT NULL,
    account_id INTEGER NOT NULL,
    PRIMARY KEY (name, username)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX account_names_by_account ON account_names (account_id, name);
  `,
  `
  -- Changes of groups themselves, by call: members, title, admin, modes of agents.
  CREATE TABLE conversation_changes (
    conversation_id INTEGER NOT NULL REFERENCES conversations (id),
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    actor_id INTEGER NOT NULL REFERENCES accounts (id),
    changes TEXT NOT NULL,
    PRIMARY KEY (conversation_id, seq)
  ) STRICT, WITHOUT ROWID;
  `,
  `
  -- The account that an OIDC issuer (iss) identifies by a subject (sub).
  CREATE TABLE identities (
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    created_at INTEGER NOT NULL,
    PRIMARY KEY (issuer, subject)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX identities_by_account ON identities (account_id);
  `,
  `
  -- Every new display name increments name_counter. The new value is the account's version.
  ALTER TABLE accounts ADD COLUMN version INTEGER NOT NULL DEFAULT 0;
  CREATE INDEX accounts_by_version ON accounts (version) WHERE version > 0;
  CREATE TABLE name_counter (
    id INTEGER PRIMARY KEY,
    seq INTEGER NOT NULL
  ) STRICT;
  INSERT INTO name_counter (id, seq) VALUES (1, 0);

  -- An account's own counter: each call that hides messages increments it.
  ALTER TABLE accounts ADD COLUMN own_seq INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE hidden ADD COLUMN own_seq INTEGER NOT NULL DEFAULT 0;
  UPDATE hidden SET own_seq = counted.own_seq
  FROM (SELECT account_id, conversation_id, seq, row_number()
          OVER (PARTITION BY account_id ORDER BY conversation_id, seq) AS own_seq FROM hidden) counted
  WHERE counted.account_id = hidden.account_id AND counted.seq = hidden.seq
    AND counted.conversation_id = hidden.conversation_id;
  UPDATE accounts SET own_seq = (SELECT count(*) FROM hidden WHERE account_id = accounts.id)
  WHERE id IN (SELECT account_id FROM hidden);
  CREATE INDEX hidden_by_own_seq ON hidden (account_id, own_seq);
  `,
  `
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
  `,
  `
  CREATE TABLE operators (
    account_id INTEGER PRIMARY KEY REFERENCES accounts (id),
    created_at INTEGER NOT NULL
  ) STRICT;
  `,
  `
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
  `,
  `
  CREATE TABLE service_keys (
    name TEXT PRIMARY KEY,
    key_hash TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    last_used_at INTEGER,
    revoked_at INTEGER
  ) STRICT, WITHOUT ROWID;

  -- The id of a person in the product that embeds the service, and what the product stores with it.
  ALTER TABLE accounts ADD COLUMN external_id TEXT;
  ALTER TABLE accounts ADD COLUMN metadata TEXT;
  CREATE UNIQUE INDEX accounts_by_external_id ON accounts (external_id)
    WHERE external_id IS NOT NULL;
  `,
  `
  -- Whether the session ends at expires_at, however it is used.
  ALTER TABLE sessions ADD COLUMN fixed INTEGER NOT NULL DEFAULT 0;
  `,
  `
  ALTER TABLE accounts ADD COLUMN suspended_at INTEGER;
  CREATE INDEX accounts_suspended ON accounts (username) WHERE suspended_at IS NOT NULL;
  `,
  `
  -- Addresses that are sent events. An empty list of events stands for all.
  CREATE TABLE webhooks (
    id TEXT PRIMARY KEY,
    url TEXT NOT NULL,
    secret TEXT NOT NULL,
    events TEXT NOT NULL,
    chat TEXT,
    disabled TEXT,
    created_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
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
  `,
  `
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
  `,
  `
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
  `,
  `
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
  `,
  `
  -- Imported messages are not in the totals of the conversation: they are never unread.
  ALTER TABLE messages ADD COLUMN imported INTEGER NOT NULL DEFAULT 0;
  `,
  `
  -- Turns that the operator's key pays for, and the tokens that they have used or reserved.
  ALTER TABLE turns ADD COLUMN by_operator INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE agent_usage ADD COLUMN operator_tokens INTEGER NOT NULL DEFAULT 0;
  `,
  `
  -- Set once the account, or the person whom it belongs to, is erased.
  ALTER TABLE accounts ADD COLUMN erased_at INTEGER;
  -- Erasures that are not finished: conversations to leave, and messages to delete.
  CREATE TABLE erasures (
    account_id INTEGER PRIMARY KEY REFERENCES accounts (id),
    messages INTEGER NOT NULL,
    created_at INTEGER NOT NULL
  ) STRICT;
  -- Set once nobody can write to the conversation any more.
  ALTER TABLE conversations ADD COLUMN closed_at INTEGER;
  `,
  `
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
  -- Who may add the account to conversations: everyone, or those it knows.
  ALTER TABLE accounts ADD COLUMN added_by TEXT NOT NULL DEFAULT 'everyone';
  -- Whether the member has sent a message to the conversation.
  ALTER TABLE members ADD COLUMN wrote INTEGER NOT NULL DEFAULT 0;
  UPDATE members SET wrote = 1
  WHERE (conversation_id, account_id) IN (SELECT conversation_id, sender_id FROM messages);
  `,
  `
  -- The username of the operator who created the webhook; null for a service key.
  ALTER TABLE webhooks ADD COLUMN creator TEXT;
  `,
  `
  -- Accounts that are no members of a conversation but that its history shows: those that left, and
  -- those that incoming hooks post as.
  CREATE TABLE former_members (
    conversation_id INTEGER NOT NULL,
    account_id INTEGER NOT NULL,
    PRIMARY KEY (conversation_id, account_id)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX former_members_by_account ON former_members (account_id);
  INSERT INTO former_members (conversation_id, account_id)
  SELECT f.conversation_id, f.account_id FROM (
    SELECT conversation_id, sender_id AS account_id FROM messages
    UNION
    SELECT c.conversation_id, s.value
    FROM conversation_changes c, json_each(c.changes) j, json_each(j.value, '$.subjects') s
    WHERE json_extract(j.value, '$.kind') IN ('left', 'removed')
    UNION
    SELECT c.id, a.id FROM incoming_hooks h
    JOIN conversations c ON c.uuid = h.chat JOIN accounts a ON a.username = h.account
  ) f WHERE NOT EXISTS (SELECT 1 FROM members m
    WHERE m.conversation_id = f.conversation_id AND m.account_id = f.account_id);
  `,
  `
  CREATE INDEX reactions_by_account ON reactions (account_id, id);
  `,
  `
  -- What the server writes names no account, so that nothing is left of the name of an erased one:
  -- neither the sentence about a missing key nor the copies of reported messages.
  INSERT INTO search_changes (message_id) SELECT m.id FROM turns t JOIN messages m ON m.id = t.message_id
    WHERE json_extract(t.error, '$.code') = 'key_missing' AND m.content = json_extract(t.error, '$.message');
  UPDATE messages SET content = 'The owner of this agent has not set an API key for it yet.'
  WHERE id IN (SELECT m.id FROM turns t JOIN messages m ON m.id = t.message_id
    WHERE json_extract(t.error, '$.code') = 'key_missing' AND m.content = json_extract(t.error, '$.message'));
  UPDATE messages SET turn = json_set(turn, '$.error.message', 'The owner of this agent has not set an API key for it yet.')
  WHERE id IN (SELECT t.message_id FROM turns t WHERE json_extract(t.error, '$.code') = 'key_missing')
    AND json_extract(turn, '$.error.code') = 'key_missing';
  UPDATE turns SET error = json_set(error, '$.message', 'The owner of this agent has not set an API key for it yet.')
  WHERE json_extract(error, '$.code') = 'key_missing';
  UPDATE reports SET message = json_remove(message, '$.sender');
  `,
  `
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
  -- Blobs whose files are deleted, until they are deleted too.
  CREATE TABLE abandoned_blobs (blob TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
  CREATE TABLE upload_usage (
    owner_id INTEGER NOT NULL,
    day TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    PRIMARY KEY (owner_id, day)
  ) STRICT, WITHOUT ROWID;
  -- The files of a message as clients see them. They do not change once the message is sent.
  ALTER TABLE messages ADD COLUMN files TEXT;
  `,
  `
  -- For the files of a person, in the order of their ids.
  CREATE INDEX files_by_owner ON files (owner_id, uuid);
  `,
  `
  -- The files of their pictures.
  ALTER TABLE accounts ADD COLUMN picture_id TEXT;
  ALTER TABLE conversations ADD COLUMN picture_id TEXT;
  `,
  `
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
    expires_at INTEGER
  ) STRICT, WITHOUT ROWID;
  CREATE UNIQUE INDEX tool_calls_by_message ON tool_calls (message_id, position);
  CREATE INDEX tool_calls_pending ON tool_calls (owner_id, expires_at) WHERE status = 'pending';
  ALTER TABLE messages ADD COLUMN tool_calls TEXT;
  -- The message whose calls the turn continues, and what each call of the model took.
  ALTER TABLE turns ADD COLUMN continues_id INTEGER;
  ALTER TABLE turns ADD COLUMN rounds TEXT;
  `,
  `
  -- The day (UTC) on which an agent last changed its provider.
  ALTER TABLE accounts ADD COLUMN provider_day TEXT;
  `,
  `
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
    PRIMARY KEY (agent_id, server_id, tool)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX tool_grants_by_server ON tool_grants (server_id);
  `,
  `
  -- What tools asked the owners of agents while they ran, until the call ends.
  CREATE TABLE elicitations (
    uuid TEXT PRIMARY KEY,
    call_uuid TEXT NOT NULL,
    conversation_id INTEGER NOT NULL,
    owner_id INTEGER NOT NULL REFERENCES accounts (id),
    action TEXT,
    content TEXT
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX elicitations_by_call ON elicitations (call_uuid);
  `,
  `
  -- Tokens with which programs connect as external agents, and when such programs were last seen.
  CREATE TABLE agent_tokens (
    id TEXT PRIMARY KEY,
    token_hash TEXT NOT NULL UNIQUE,
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    name TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    last_used_at INTEGER
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX agent_tokens_by_account ON agent_tokens (account_id);
  CREATE TABLE agent_presence (
    account_id INTEGER PRIMARY KEY REFERENCES accounts (id),
    seen_at INTEGER NOT NULL
  ) STRICT;
  `,
  `
  -- The fingerprint of the tool as it was when the call was asked for.
  ALTER TABLE tool_calls ADD COLUMN fingerprint TEXT;
  `,
  `
  -- Fields of a call that only the provider of its model understands, as JSON.
  ALTER TABLE tool_calls ADD COLUMN provider_fields TEXT;
  `,
  `
  -- The JSON Schema of what a tool asks for.
  ALTER TABLE elicitations ADD COLUMN schema TEXT;
  `,
  `
  -- The position in the change log when a webhook was created or enabled: it receives what follows.
  ALTER TABLE webhooks ADD COLUMN since INTEGER NOT NULL DEFAULT 0;
  `,
  `
  -- What the model thought before a call, in the format of its provider, as JSON.
  ALTER TABLE tool_calls ADD COLUMN thoughts TEXT;
  `,
  `
  -- Thoughts would outlive messages that are deleted, so they are not stored.
  ALTER TABLE tool_calls DROP COLUMN thoughts;
  `,
  `
  -- SQLite uses a partial index only where a query contains exactly its condition.
  DROP INDEX turns_open;
  CREATE INDEX turns_waiting ON turns (agent_id, conversation_id) WHERE status = 'waiting';
  CREATE INDEX turns_running ON turns (agent_id, conversation_id) WHERE status = 'running';
  `,
  `
  -- The message in which a tool asks, so that an owner can list what is asked.
  ALTER TABLE elicitations ADD COLUMN message_uuid TEXT;
  CREATE INDEX elicitations_by_owner ON elicitations (owner_id);
  `,
  `
  -- What is asked in a message that is deleted is cancelled.
  CREATE INDEX elicitations_by_message ON elicitations (message_uuid);
  `,
  `
  -- Ended deliveries are pruned without reading those that wait, which may be many.
  CREATE INDEX deliveries_ended ON deliveries (webhook_id, id) WHERE status <> 'pending';
  `,
  `
  -- When the retries of what waits for a webhook began anew, because it was enabled or has a new address.
  ALTER TABLE webhooks ADD COLUMN resumed_at INTEGER NOT NULL DEFAULT 0;
  `,
  `
  -- An erasure finds the calls of an owner's agents.
  CREATE INDEX tool_calls_by_owner ON tool_calls (owner_id);
  `,
  `
  -- The place of a grant in the list that its owner gave.
  ALTER TABLE tool_grants ADD COLUMN position INTEGER NOT NULL DEFAULT 0;
  `,
  `
  -- What a product lets a person do, where that differs from what the server does, as JSON.
  ALTER TABLE accounts ADD COLUMN policy TEXT;
  `,
  `
  -- What the backend of a product stores, as JSON, and its own ids of conversations.
  ALTER TABLE messages ADD COLUMN metadata TEXT;
  ALTER TABLE conversations ADD COLUMN metadata TEXT;
  ALTER TABLE conversations ADD COLUMN external_id TEXT;
  CREATE UNIQUE INDEX conversations_by_external_id ON conversations (external_id)
    WHERE external_id IS NOT NULL;
  `,
  `
  -- Creating a webhook again by its name creates no other one.
  ALTER TABLE webhooks ADD COLUMN name TEXT;
  CREATE UNIQUE INDEX webhooks_by_name ON webhooks (coalesce(creator, ''), name)
    WHERE name IS NOT NULL;
  `,
  `
  -- The quota adds up the sizes of all files from the index alone, without reading the wide rows.
  CREATE INDEX files_by_size ON files (size);
  `,
  `
  -- Links with which people set a new password: the last one of each account.
  CREATE TABLE password_resets (
    account_id INTEGER PRIMARY KEY REFERENCES accounts (id),
    token_hash TEXT NOT NULL UNIQUE,
    expires_at INTEGER NOT NULL
  ) STRICT;
  `,
  `
  -- When the person last proved again who they are; null: not since the sign-in.
  ALTER TABLE sessions ADD COLUMN confirmed_at INTEGER;
  `,
];
