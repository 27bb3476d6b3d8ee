import { mentioned, mentionedHandles } from "./rules/mentions.ts";
import type { ReadTx } from "./store/store.ts";

/** The participants of a conversation whom a message's content mentions. */
export async function mentionsIn(
  tx: ReadTx,
  content: string,
  conversationId: number,
): Promise<string[]> {
  const handles = mentionedHandles(content);
  if (handles.length === 0) return [];
  const present = await tx.participantsAmong(conversationId, [...new Set(handles.flat())]);
  return mentioned(handles, new Set(present));
}
