import type { LocalMessage } from "@parley/client";
import { useClient } from "@parley/client/react";
import { useCallback, useSyncExternalStore } from "react";

/** The last message that failed, or else the last one that waits to be sent. */
export const unsentMessage = (messages: readonly LocalMessage[]): LocalMessage | undefined =>
  messages.findLast(({ delivery }) => delivery === "failed") ??
  messages.findLast(({ delivery }) => delivery === "sending");

/** The same of a conversation, in a component. */
export function useUnsentMessage(chatId: string): LocalMessage | undefined {
  const { model } = useClient();
  const subscribe = useCallback(
    (onChange: () => void) => model.watch(`messages:${chatId}`, onChange),
    [model, chatId],
  );
  return useSyncExternalStore(subscribe, () =>
    unsentMessage(model.get(`messages:${chatId}`).items),
  );
}
