import type { File, Turn } from "@parley/protocol";
import type { AccountRecord, JsonObject } from "./accounts.ts";
import { decoded } from "./sql.ts";

/** A message as units of work handle it. `message-views.ts` has what clients see. */
export interface MessageRecord {
  readonly id: number;
  readonly uuid: string;
  readonly conversation_id: number;
  readonly conversation_uuid: string;
  readonly seq: number;
  readonly sender_id: number;
  readonly sender_owner_id: number | null;
  readonly sender_kind: "human" | "agent";
  readonly mentions: readonly string[];
  readonly files: readonly File[];
  readonly finalized: boolean;
  readonly deleted: boolean;
  /** Imported messages count as read for everybody. */
  readonly imported: boolean;
}

export interface NewMessage {
  conversation: { readonly id: number; readonly uuid: string };
  sender: AccountRecord;
  content: string;
  client_msg_id: string | null;
  reply_to_id: string | null;
  mentions: readonly string[];
  files?: readonly File[];
  /** What a product stores with it. */
  metadata?: JsonObject | undefined;
  /** Set for the placeholder of an agent's answer, which is not finalized yet. */
  turn?: Turn;
  /** Set for the reply to a component action. */
  action?: NewAction;
  at: number;
}

/** The component action that a message replies to. */
export interface NewAction {
  token: string;
  label: string | null;
  by: AccountRecord;
}

export const MESSAGE_TABLES = `messages m JOIN accounts a ON a.id = m.sender_id
  JOIN conversations c ON c.id = m.conversation_id`;

/** Selects `MessageRecordRow`s. */
export const MESSAGE_RECORDS = `SELECT m.id, m.uuid, m.conversation_id, c.uuid AS conversation_uuid,
    m.seq, m.sender_id, a.owner_id AS sender_owner_id, a.kind AS sender_kind, m.mentions,
    m.finalized_at, m.deleted_at, m.imported, m.files
  FROM ${MESSAGE_TABLES}`;

export type MessageRecordRow = Omit<
  MessageRecord,
  "mentions" | "files" | "finalized" | "deleted" | "imported"
> & {
  mentions: string | string[] | null;
  files: string | File[] | null;
  finalized_at: number | null;
  deleted_at: number | null;
  imported: boolean | number;
};

export const toMessageRecord = (row: MessageRecordRow): MessageRecord => {
  const { mentions, files, finalized_at, deleted_at, ...record } = row;
  return {
    ...record,
    mentions: decoded(mentions) ?? [],
    files: decoded(files) ?? [],
    finalized: finalized_at !== null,
    deleted: deleted_at !== null,
    imported: Boolean(record.imported),
  };
};

/** How a message of this sender counts in the totals of people's and agents' messages. */
export const countsOf = (kind: "human" | "agent") =>
  kind === "human" ? { humans: 1, agents: 0 } : { humans: 0, agents: 1 };

/** How a message counts in those totals. Imported ones do not: they are never unread. */
export const countsIn = ({ sender_kind, imported }: MessageRecord) =>
  imported ? { humans: 0, agents: 0 } : countsOf(sender_kind);
