import type { LiveModel, LocalMessage } from "@parley/client";

/** A message of a conversation, if it is loaded. */
export function loadedMessage(
  model: LiveModel,
  chatId: string,
  id: string,
): LocalMessage | undefined {
  const isIt = (message: LocalMessage) => message.id === id;
  return (
    model.get(`messages:${chatId}`).items.findLast(isIt) ??
    model.get(`aside:${chatId}`)?.items.find(isIt)
  );
}
