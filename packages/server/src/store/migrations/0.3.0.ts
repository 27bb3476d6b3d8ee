import type { Text } from "./index.ts";

/** From the schema of 0.2.0 to that of 0.3.0. */
export const STEP: Text = (_either) => `
-- A person's own view of a conversation. The level of notifications is null unless it was set.
ALTER TABLE members ADD COLUMN notify text COLLATE "C";
ALTER TABLE members ADD COLUMN muted_until bigint;
ALTER TABLE members ADD COLUMN pinned boolean NOT NULL DEFAULT false;
ALTER TABLE members ADD COLUMN archived boolean NOT NULL DEFAULT false;
-- Nothing up to this value of the counter exists for the member any more.
ALTER TABLE members ADD COLUMN cleared_seq bigint NOT NULL DEFAULT 0;
-- The value of the own counter of the account when its own view last changed.
ALTER TABLE members ADD COLUMN own_seq bigint NOT NULL DEFAULT 0;
CREATE INDEX members_by_own_seq ON members (account_id, own_seq) WHERE own_seq > 0;
-- The read position that others are shown, where it is another one than last_read_seq.
ALTER TABLE members ADD COLUMN shown_read_seq bigint;
-- Set by clearing: lists leave the conversation out while nothing is newer than cleared_seq.
ALTER TABLE members ADD COLUMN unlisted boolean NOT NULL DEFAULT false;
CREATE INDEX members_pinned ON members (account_id) WHERE pinned;
CREATE INDEX members_archived ON members (conversation_id) WHERE archived;
-- The number of members who have archived the conversation: a send looks for them only if there are any.
ALTER TABLE counters ADD COLUMN archived bigint NOT NULL DEFAULT 0;
-- Set once a conversation is erased. For everybody it does not exist from then on.
ALTER TABLE conversations ADD COLUMN erased_at bigint;
-- Erased conversations whose messages are still to be deleted.
CREATE TABLE conversation_erasures (
  conversation_id bigint PRIMARY KEY REFERENCES conversations (id),
  created_at bigint NOT NULL
);

-- Whether others are told when the person is online: visible or hidden.
ALTER TABLE accounts ADD COLUMN presence text COLLATE "C" NOT NULL DEFAULT 'visible';
-- When people last opened a socket, or closed the last one. Not a column of accounts: their rows are
-- locked by units that do much more.
CREATE TABLE last_seen (
  account_id bigint PRIMARY KEY REFERENCES accounts (id),
  seen_at bigint NOT NULL
);
`;
