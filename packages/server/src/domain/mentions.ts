import { mentionedHandles } from "@parley/protocol/markup";
import type { ReadTx } from "../store/store.ts";

/** The usernames of the participants that the content of a message mentions. */
export async function mentionsIn(
  tx: ReadTx,
  content: string,
  conversationId: number,
): Promise<string[]> {
  const handles = mentionedHandles(content);
  return handles.length > 0 ? tx.participantsAmong(conversationId, handles) : [];
}
