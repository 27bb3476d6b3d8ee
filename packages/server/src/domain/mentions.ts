import { mentionedHandles } from "@parley/protocol/markup";
import type { Awaitable } from "../store/awaitable.ts";
import type { ReadTx } from "../store/store.ts";

/** The usernames of the participants that the content of a message mentions. */
export function mentionsIn(
  tx: ReadTx,
  content: string,
  conversationId: number,
): Awaitable<string[]> {
  const handles = mentionedHandles(content);
  return handles.length > 0 ? tx.participantsAmong(conversationId, handles) : [];
}
