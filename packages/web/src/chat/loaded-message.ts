import type { LiveModel, LocalMessage } from "@parley/client";

/** A message, if it is among those loaded of its conversation. */
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
