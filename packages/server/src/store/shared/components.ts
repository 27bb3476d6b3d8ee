import type { ComponentUse } from "@parley/protocol";
import { type AccountRow, publicAccount } from "../../rules/accounts.ts";
import { iso } from "../../rules/time.ts";
import type { NewMessage } from "../messages.ts";

/** Number of component uses that are kept for each message. */
export const KEPT_USES = 50;

/** What a message row stores about the component action that it replies to. */
export interface StoredAction {
  token: string;
  label: string | null;
  by: number;
}

export const toStoredAction = ({ action }: NewMessage): StoredAction | null =>
  action ? { token: action.token, label: action.label, by: action.by.id } : null;

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
