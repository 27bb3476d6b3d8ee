import { mentionedHandles } from "@parley/protocol/markup";
import type { AccountRecord } from "../store/accounts.ts";
import type { Awaitable } from "../store/awaitable.ts";
import type { ReadTx } from "../store/store.ts";
import { blockableIds } from "./blocks.ts";

/**
 * The usernames of the participants that the content of a message mentions, without those who have
 * blocked its sender. At most `most` different handles of the content are looked at, the first ones.
 */
export function mentionsIn(
  tx: ReadTx,
  content: string,
  conversationId: number,
  sender: Pick<AccountRecord, "id" | "owner_id">,
  most: number,
): Awaitable<string[]> {
  const handles = mentionedHandles(content).slice(0, most);
  return handles.length > 0 ? allowedMentions(tx, handles, conversationId, sender) : [];
}

async function allowedMentions(
  tx: ReadTx,
  handles: readonly string[],
  conversationId: number,
  sender: Pick<AccountRecord, "id" | "owner_id">,
): Promise<string[]> {
  const mentioned = await tx.participantsAmong(conversationId, handles);
  if (mentioned.length === 0) return mentioned;
  const accounts = await tx.accounts(mentioned);
  const blockers = await tx.blockersAmong(
    accounts.map(({ id }) => id),
    blockableIds(sender),
  );
  if (blockers.length === 0) return mentioned;
  const refusing = accounts.filter(({ id }) => blockers.includes(id));
  const names = new Set(refusing.map(({ username }) => username));
  return mentioned.filter((username) => !names.has(username));
}
