import { mentionedHandles } from "@parley/protocol/markup";
import type { ReadTx } from "../store/store.ts";

/** The participants of a conversation whom a message's content mentions. */
export async function mentionsIn(
  tx: ReadTx,
  content: string,
  conversationId: number,
): Promise<string[]> {
  const handles = mentionedHandles(content);
  return handles.length > 0 ? tx.participantsAmong(conversationId, handles) : [];
}
