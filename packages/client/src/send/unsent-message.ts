import type { Account } from "@parley/protocol";
import type { LocalFile, LocalMessage } from "../types.ts";

export interface UnsentMessage {
  /** The `client_msg_id`. */
  id: string;
  chatId: string;
  content: string;
  replyTo: string | undefined;
  sender: Account;
  files?: LocalFile[];
  createdAt?: string;
  failure?: string | undefined;
  refusal?: LocalMessage["refusal"];
  isRejected?: boolean | undefined;
}

/** A message as it is shown before the service has accepted it. */
export function createUnsentMessage(unsent: UnsentMessage): LocalMessage {
  const { id, chatId, content, replyTo, sender, files = [] } = unsent;
  const { failure, refusal, isRejected = false } = unsent;
  const { createdAt = new Date().toISOString() } = unsent;
  return {
    id,
    conversation_id: chatId,
    seq: 0,
    version: 0,
    sender,
    content,
    client_msg_id: id,
    reply_to_id: replyTo ?? null,
    created_at: createdAt,
    edited_at: null,
    finalized_at: createdAt,
    reactions: [],
    mentions: [],
    turn: null,
    action: null,
    uses: [],
    tool_calls: [],
    files,
    delivery: failure === undefined ? "sending" : "failed",
    ...(failure !== undefined && { failure }),
    ...(refusal && { refusal }),
    ...(isRejected && { isRejected }),
  };
}

/** A random UUID. Pages without TLS have no `crypto.randomUUID`. */
export function createClientMsgId(): string {
  if (crypto.randomUUID) return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}
