import type { File, Message, Turn } from "@parley/protocol";
import { type AccountRow, publicAccount } from "../../rules/accounts.ts";
import type { CallOfMessage } from "../../rules/tool-calls.ts";
import { type ReactionSummaryRow, toReactionSummaries } from "../reactions.ts";
import { PUBLIC_ACCOUNT } from "../shared/accounts.ts";
import {
  COMPONENT_USES,
  type ComponentUseRow,
  type StoredAction,
  toComponentUse,
} from "../shared/components.ts";
import { detailsNeeded, type MessageRow, toMessage, VISIBLE_MESSAGES } from "../shared/messages.ts";
import type { Connection } from "./connection.ts";
import { parsedMentions } from "./mentions.ts";

export type StoredMessageRow = Omit<
  MessageRow,
  "mentions" | "turn" | "action" | "files" | "tool_calls"
> & {
  mentions: string | null;
  files: string | null;
  tool_calls: string | null;
  turn: string | null;
  action: string | null;
};

const parsed = (row: StoredMessageRow): MessageRow => ({
  ...row,
  mentions: parsedMentions(row.mentions),
  turn: row.turn === null ? null : (JSON.parse(row.turn) as Turn),
  action: row.action === null ? null : (JSON.parse(row.action) as StoredAction),
  files: parsedFiles(row.files),
  tool_calls: row.tool_calls === null ? null : (JSON.parse(row.tool_calls) as CallOfMessage[]),
});

export const parsedFiles = (files: string | null) =>
  files === null ? null : (JSON.parse(files) as File[]);

/** Converts rows to messages as a viewer sees them. */
export type ViewMessages = (rows: readonly StoredMessageRow[], viewerId: number) => Message[];

export function viewMessages(db: Connection): ViewMessages {
  const reactions = db.query<ReactionSummaryRow>(
    `SELECT r.message_id, r.emoji, count(*) AS count, max(r.account_id = ?2) AS reacted
     FROM json_each(?1) j JOIN reactions r ON r.message_id = j.value
     GROUP BY r.message_id, r.emoji ORDER BY min(r.id)`,
  );
  const account = db.query<AccountRow>(`SELECT ${PUBLIC_ACCOUNT} FROM accounts a WHERE a.id = ?`);
  const uses = db.query<ComponentUseRow>(`${COMPONENT_USES} WHERE u.message_id = ? ORDER BY u.id`);
  const streamed = streamedText(db);
  return (stored, viewerId) => {
    const rows = stored.map(parsed);
    const reacted = detailsNeeded(rows).reactions;
    const summaries = toReactionSummaries(
      reacted.length === 0 ? [] : reactions.all(JSON.stringify(reacted), viewerId),
    );
    const details = {
      streamed,
      reactions: (id: number) => summaries.get(id),
      uses: (id: number) => uses.all(id).map(toComponentUse),
      account: (id: number) => {
        const row = account.get(id);
        return row && publicAccount(row);
      },
    };
    return rows.map((row) => toMessage(row, details));
  };
}

/** The text that a message has streamed so far. */
export function streamedText(db: Connection) {
  const chunks = db.query<{ text: string }>(
    "SELECT text FROM chunks WHERE message_id = ? ORDER BY byte_offset",
  );
  return (messageId: number): string =>
    chunks
      .all(messageId)
      .map(({ text }) => text)
      .join("");
}

/** The latest message of a conversation that a viewer can see. */
export function latestMessage(db: Connection) {
  const view = viewMessages(db);
  const latest = db.query<StoredMessageRow>(`${VISIBLE_MESSAGES} ORDER BY m.seq DESC LIMIT 1`);
  return (conversationId: number, viewerId: number): Message | null =>
    view(latest.all(conversationId, viewerId), viewerId)[0] ?? null;
}
