import type { LiveModel, LocalMessage } from "@parley/client";
import { useClient } from "@parley/client/react";
import { useCallback, useSyncExternalStore } from "react";

/** The same before and after a message of one's own has its id. */
export const stableId = ({ client_msg_id, id }: LocalMessage) => client_msg_id ?? id;

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

/** The same in a component, which renders again when the message changes. */
export function useLoadedMessage(chatId: string, id: string): LocalMessage | undefined {
  const { model } = useClient();
  const subscribe = useCallback(
    (onChange: () => void) => {
      const unwatches = [
        model.watch(`messages:${chatId}`, onChange),
        model.watch(`aside:${chatId}`, onChange),
      ];
      return () => {
        for (const unwatch of unwatches) unwatch();
      };
    },
    [model, chatId],
  );
  return useSyncExternalStore(subscribe, () => loadedMessage(model, chatId, id));
}
