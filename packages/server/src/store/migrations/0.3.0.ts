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

-- Whether others are told when the person is online: visible or hidden.
ALTER TABLE accounts ADD COLUMN presence text COLLATE "C" NOT NULL DEFAULT 'visible';
-- When people last opened a socket, or closed the last one. Not a column of accounts: their rows are
-- locked by units that do much more.
CREATE TABLE last_seen (
  account_id bigint PRIMARY KEY REFERENCES accounts (id),
  seen_at bigint NOT NULL
);
`;
