import type { ComponentUse } from "@parley/protocol";
import { type AccountRow, publicAccount } from "../../rules/accounts.ts";
import { iso } from "../../rules/time.ts";
import type { NewMessage } from "../messages.ts";
import { PUBLIC_ACCOUNT } from "./accounts.ts";

/** Number of component uses that are kept for each message. */
const KEPT_USES = 50;

/** What a message row stores about the component action that it replies to. */
export interface StoredAction {
  token: string;
  label: string | null;
  by: number;
}

export const toStoredAction = ({ action }: NewMessage): StoredAction | null =>
  action ? { token: action.token, label: action.label, by: action.by.id } : null;

/** Selects `ComponentUseRow`s: uses of components with the accounts that used them. */
export const COMPONENT_USES = `SELECT u.message_id, u.token, u.used_at, ${PUBLIC_ACCOUNT}
  FROM component_uses u JOIN accounts a ON a.id = u.account_id`;

export const DELETE_USE =
  "DELETE FROM component_uses WHERE message_id = $1 AND account_id = $2 AND token = $3";

export const INSERT_USE = `INSERT INTO component_uses (message_id, account_id, token, used_at)
  VALUES ($1, $2, $3, $4)`;

export const PRUNE_USES = `DELETE FROM component_uses WHERE message_id = $1 AND id NOT IN (
  SELECT id FROM component_uses WHERE message_id = $1 ORDER BY id DESC LIMIT ${KEPT_USES})`;

/** Counts the uses of a message, and sets its version unless parameter 2 is null. */
export const COUNT_USES = `UPDATE messages SET version = coalesce($2, version),
  uses = (SELECT count(*) FROM component_uses WHERE message_id = $1) WHERE id = $1`;

export interface ComponentUseRow extends AccountRow {
  message_id: number;
  token: string;
  used_at: number;
}

export const toComponentUse = (row: ComponentUseRow): ComponentUse => ({
  token: row.token,
  by: publicAccount(row),
  at: iso(row.used_at),
});
